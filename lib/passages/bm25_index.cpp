#include "passages/bm25_index.h"

#include "core/parallel.h"

namespace passages {

void TermLists::add(std::vector<TermCount>& terms) {
  if (length_.size() == std::size_t{1} << 31)
    core::bad_data("more than {} units; use longer segments, or parts of the data", length_.size());
  std::ranges::sort(terms, {}, &TermCount::term);
  std::uint32_t length = 0;
  for (const auto& [term, count] : terms) {
    if (term >= units_with_.size()) units_with_.resize(std::size_t{term} + 1);
    ++units_with_[term];
    length += count;
  }
  lists_.append(terms);
  begin_.push_back(lists_.size());
  length_.push_back(length);
  total_ += length;
}

Bm25::Bm25(const TermLists& lists, const Bm25Options& options)
    : lists_(lists), base_(options.k1 * (1 - options.b)),
      per_term_(lists.average_length() > 0 ? options.k1 * options.b / lists.average_length() : 0) {
  idf_.reserve(lists.terms());
  for (std::uint32_t term = 0; term < lists.terms(); ++term) {
    const double with = lists.units_with(term);
    idf_.push_back(static_cast<float>(std::log1p((lists.size() - with + 0.5) / (with + 0.5))));
  }
}

double Bm25::score(std::uint32_t query, std::uint32_t unit) const {
  const auto terms = lists_.list(query), others = lists_.list(unit);
  const float unit_norm = norm(unit);
  double sum = 0;
  for (auto t = terms.begin(), o = others.begin(); t != terms.end() && o != others.end();) {
    if (t->term == o->term) {
      sum += static_cast<double>(idf(t->term)) * t->count * impact(o->count, unit_norm);
      ++t;
      ++o;
    } else if (t->term < o->term) {
      ++t;
    } else {
      ++o;
    }
  }
  return sum;
}

void Hits::set(std::uint32_t query, std::span<const Hit> best) {
  std::ranges::copy(best, hits_.begin() + static_cast<std::ptrdiff_t>(std::size_t{query} * top_));
  count_[query] = static_cast<std::uint32_t>(best.size());
}

namespace {

// A posting costs about as much as this many units of a row, including a margin for the row's
// memory.
constexpr std::uint32_t kDenseShare = 8;

// Prefetch postings this many terms ahead; half of their cost is the latency of the first ones.
constexpr std::size_t kAhead = 6;

// A score that no sum can raise above any other.
constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr std::size_t kBatch = BlockSearcher::kBatch;

// Returns the end of the units whose index, from `first` on, fits into `memory`; at least one
// block.
std::uint32_t part_end(
    const TermLists& lists, const TermKinds& kinds, std::uint32_t first, std::uint64_t memory) {
  std::uint64_t bytes = 0;
  std::uint32_t last = first;
  while (last < lists.size()) {
    const auto next = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(lists.size(), std::uint64_t{last} + BlockView::kUnits));
    bytes += IndexBlock::bytes(lists, kinds, last, next);
    if (last > first && bytes > memory) break;
    last = next;
  }
  return last;
}

}  // namespace

TermKinds::TermKinds(const TermLists& lists) : row_(lists.terms(), kSparse) {
  const std::uint32_t least = std::max<std::uint32_t>(lists.size() / kDenseShare, 1);
  for (std::uint32_t term = 0; term < lists.terms(); ++term)
    if (lists.units_with(term) > least) row_[term] = rows_++;
}

IndexBlock::IndexBlock(
    const Bm25& bm25, const TermKinds& kinds, std::uint32_t first, std::uint32_t last)
    : first_(first), tiles_(static_cast<std::uint32_t>((last - first + kTile - 1) / kTile)),
      tile_floats_(std::size_t{kinds.rows()} * kTile),
      begin_(std::size_t{bm25.lists().terms()} + 1), rows_(tiles_ * tile_floats_) {
  const auto& lists = bm25.lists();
  // Holds counts, then the begins of the terms' postings, then (while filling) their ends.
  for (std::uint32_t unit = first; unit < last; ++unit)
    for (const auto& [term, count] : lists.list(unit))
      if (kinds.row(term) == TermKinds::kSparse) ++begin_[term];
  std::uint32_t n = 0;
  for (auto& begin : begin_) n += std::exchange(begin, n);
  units_.resize(n);
  impacts_.resize(n);
  for (std::uint32_t unit = first; unit < last; ++unit) {
    const float norm = bm25.norm(unit);
    const std::uint32_t local = unit - first;
    float* rows = tile_floats_ > 0 ? &rows_[local / kTile * tile_floats_ + local % kTile] : nullptr;
    for (const auto& [term, count] : lists.list(unit)) {
      const float impact = Bm25::impact(count, norm);
      if (const auto row = kinds.row(term); row != TermKinds::kSparse) {
        rows[row * kTile] = impact;
        continue;
      }
      const auto at = begin_[term]++;
      units_[at] = static_cast<std::uint16_t>(local);
      impacts_[at] = impact;
    }
  }
  // Each begin is now its term's end, which is the next term's begin.
  std::rotate(begin_.begin(), begin_.end() - 1, begin_.end());
  begin_.front() = 0;
}

std::uint64_t IndexBlock::bytes(
    const TermLists& lists, const TermKinds& kinds, std::uint32_t first, std::uint32_t last) {
  const std::uint64_t postings = lists.begin(last) - lists.begin(first);
  return postings * (sizeof(std::uint16_t) + sizeof(float)) +
         std::uint64_t{lists.terms()} * sizeof(std::uint32_t) +
         std::uint64_t{last - first} * kinds.rows() * sizeof(float);
}

BlockSearcher::BlockSearcher(
    std::span<const float> idf, std::span<const std::uint32_t> row, std::uint32_t top)
    : idf_(idf), row_(row), top_(top), queries_(kBatch), scores_(kGroup * BlockView::kUnits) {}

void BlockSearcher::search(std::span<const BlockView> blocks, std::span<const Bm25Query> queries,
    std::uint32_t first_query, Hits& hits) {
  for (std::size_t i = 0; i < queries.size(); ++i)
    prepare(queries_[i], queries[i], hits.of(first_query + static_cast<std::uint32_t>(i)));
  for (const auto& block : blocks)
    for (std::size_t at = 0; at < queries.size(); at += kGroup)
      score(block, std::span(queries_).subspan(at, std::min(kGroup, queries.size() - at)));
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::sort(queries_[i].best.begin(), queries_[i].best.end());
    hits.set(first_query + static_cast<std::uint32_t>(i), queries_[i].best);
  }
}

void BlockSearcher::prepare(Query& query, const Bm25Query& asked, std::span<const Hit> best) const {
  query.sparse.clear();
  query.dense.clear();
  query.without = asked.without;
  for (const auto& [term, count] : asked.terms) {
    const float weight = idf_[term] * static_cast<float>(count);
    if (const auto row = row_[term]; row == TermKinds::kSparse)
      query.sparse.push_back({term, weight});
    else query.dense.push_back({row, weight});
  }
  query.best.assign(best.begin(), best.end());
  query.threshold = query.best.size() < top_ ? 0 : query.best.back().score;
}

void BlockSearcher::score(const BlockView& block, std::span<Query> queries) {
  const std::size_t tiles = block.tiles;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    float* scores = &scores_[q * BlockView::kUnits];
    std::fill_n(scores, tiles * kTile, 0.0f);
    for (const auto& [begin, end] : queries[q].without) {
      const auto last = std::min<std::size_t>(end, block.first + tiles * kTile);
      for (std::size_t unit = std::max(begin, block.first); unit < last; ++unit)
        scores[unit - block.first] = kNever;
    }
    const auto& terms = queries[q].sparse;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (t + kAhead < terms.size()) block.prefetch(terms[t + kAhead].term);
      block.add(terms[t].term, terms[t].weight, scores);
    }
  }
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const float* rows = block.tile(tile);
    for (std::size_t q = 0; q < queries.size(); ++q)
      highest_[q][tile] =
          add_rows(rows, queries[q].dense, &scores_[q * BlockView::kUnits + tile * kTile]);
  }
  for (std::size_t q = 0; q < queries.size(); ++q)
    select(block, std::span(highest_[q], tiles), &scores_[q * BlockView::kUnits], queries[q]);
}

// Without a better bound, the `top` best scores of all are at least the `top` best of the tiles'
// maxima.
void BlockSearcher::select(
    const BlockView& block, std::span<const float> highest, const float* scores, Query& query) {
  float least = std::max(query.threshold, std::numeric_limits<float>::min());
  if (query.best.size() < top_ && highest.size() >= top_) {
    order_.assign(highest.begin(), highest.end());
    std::ranges::nth_element(order_, order_.begin() + (top_ - 1), std::greater<>());
    least = std::max(least, order_[top_ - 1]);
  }
  std::uint8_t places[kTile];
  for (std::size_t tile = 0; tile < highest.size(); ++tile) {
    if (highest[tile] < least) continue;
    const float* of_tile = scores + tile * kTile;
    const std::size_t n = places_from(of_tile, least, places);
    for (std::size_t i = 0; i < n; ++i)
      query.best.push_back(
          {block.first + static_cast<std::uint32_t>(tile * kTile + places[i]), of_tile[places[i]]});
  }
  if (query.best.size() < top_) return;
  std::nth_element(query.best.begin(), query.best.begin() + (top_ - 1), query.best.end());
  query.best.resize(top_);
  query.threshold = query.best.back().score;
}

Hits search(const Bm25& bm25, std::span<const std::uint32_t> queries, const SearchOptions& options,
    const std::function<void(std::uint64_t)>& progress, std::uint32_t* parts) {
  const auto& lists = bm25.lists();
  const TermKinds kinds(lists);
  Hits hits(static_cast<std::uint32_t>(queries.size()), options.top);
  std::mutex mutex;
  std::uint64_t done = 0;
  std::uint32_t n_parts = 0;
  const std::uint32_t units = queries.empty() ? 0 : lists.size();  // of the index
  for (std::uint32_t first = 0; first < units; ++n_parts) {
    const std::uint32_t last = part_end(lists, kinds, first, options.memory);
    std::vector<std::unique_ptr<IndexBlock>> blocks(
        (last - first + BlockView::kUnits - 1) / BlockView::kUnits);
    core::parallel_for(options.jobs, blocks.size(), [&] {
      return [&](std::uint64_t i) {
        const auto begin = first + static_cast<std::uint32_t>(i) * BlockView::kUnits;
        blocks[i] = std::make_unique<IndexBlock>(
            bm25, kinds, begin, std::min(last, begin + BlockView::kUnits));
      };
    });
    const auto views = core::mapped(blocks, [](const auto& block) { return block->view(); });
    core::parallel_for(options.jobs, (queries.size() + kBatch - 1) / kBatch, [&] {
      auto searcher =
          std::make_shared<BlockSearcher>(bm25.idf(), kinds.row_of_terms(), options.top);
      return [&, searcher](std::uint64_t i) {
        std::vector<Bm25Query> batch;
        for (const auto unit :
            queries.subspan(i * kBatch, std::min(kBatch, queries.size() - i * kBatch)))
          batch.push_back(
              {lists.list(unit), options.without.empty() ? std::span<const UnitRange>()
                                                         : options.without.subspan(unit, 1)});
        searcher->search(views, batch, static_cast<std::uint32_t>(i * kBatch), hits);
        const std::lock_guard lock(mutex);
        progress(done += batch.size());
      };
    });
    first = last;
  }
  if (parts != nullptr) *parts = n_parts;
  return hits;
}

}  // namespace passages
