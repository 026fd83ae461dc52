#include "store/exact_search.h"

#include "core/parallel.h"
#include "store/exact_kernels.h"

namespace store {
namespace {

using exact::Hit;
using exact::kBlock;
using exact::kPanel;

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::size_t kBatch = 4096;  // queries with hits in memory at once
constexpr std::size_t kFewest = 4;    // fewer run singly: a panel would be mostly empty
constexpr std::size_t kProductsPerThread = 1 << 20;  // of coordinates; less is not worth a thread
constexpr std::size_t kSample = 4'096, kLargestSample = 65'536;

std::size_t sample_size(std::size_t rows) {
  return std::min(std::max(kSample, rows / 64), kLargestSample);
}

// Sorts hits, best first. A radix sort of the scores, 11 bits at a time, takes a fifth of the time
// of std::sort. Runs of equal scores are then sorted by row.
void sort_hits(std::vector<Hit>& hits, std::vector<Hit>& spare) {
  constexpr int kBits = 11, kDigits = 3;
  constexpr std::size_t kValues = 1 << kBits;
  if (hits.size() < 256) {
    std::ranges::sort(hits, std::greater<>());
    return;
  }
  const auto digit = [](Hit hit, int i) { return ~(hit >> (32 + i * kBits)) % kValues; };
  std::array<std::array<std::uint32_t, kValues>, kDigits> place{};
  for (const Hit hit : hits)
    for (int i = 0; i < kDigits; ++i) ++place[i][digit(hit, i)];
  spare.resize(hits.size());
  for (int i = 0; i < kDigits; ++i) {
    std::uint32_t next = 0;
    for (auto& count : place[i]) next += std::exchange(count, next);
    for (const Hit hit : hits) spare[place[i][digit(hit, i)]++] = hit;
    hits.swap(spare);
  }
  for (std::size_t begin = 0, end = 0; begin < hits.size(); begin = end) {
    for (end = begin + 1; end < hits.size() && hits[end] >> 32 == hits[begin] >> 32;) ++end;
    if (end - begin > 1)
      std::sort(hits.begin() + static_cast<std::ptrdiff_t>(begin),
          hits.begin() + static_cast<std::ptrdiff_t>(end), std::greater<>());
  }
}

// Runs body(0) .. body(n - 1), each on its own thread as far as the system allows. Rethrows an
// exception of a body.
template <class Body> void parallel(std::size_t n, const Body& body) {
  std::vector<std::exception_ptr> errors(n);
  const auto guarded = [&](std::size_t i) {
    try {
      body(i);
    } catch (...) { errors[i] = std::current_exception(); }
  };
  {
    std::vector<std::jthread> others;
    core::start_threads(others, n - 1, guarded);
    for (std::size_t i = others.size(); i < n; ++i) guarded(i);
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

// Collects the best hits of some queries among some keys.
class Job {
 public:
  Job(std::size_t first_query, std::size_t n, std::size_t first_row, std::size_t rows,
      std::size_t keep, const float* thresholds)
      : first_query(first_query), n(n), first_row_(first_row), rows_(rows) {
    const std::size_t padded = (n + kPanel - 1) / kPanel * kPanel;
    // Infinite thresholds exclude the padding of the last panel.
    thresholds_.assign(padded, std::numeric_limits<float>::infinity());
    for (std::size_t q = 0; q < n; ++q) thresholds_[q] = thresholds ? thresholds[q] : kLowest;
    const std::size_t capacity = std::min(4 * keep + 64, std::max(rows, keep) + 1);
    hits_ = std::make_unique_for_overwrite<Hit[]>(n * capacity);
    for (std::size_t q = 0; q < n; ++q)
      tops_.push_back({hits_.get() + q * capacity, 0, static_cast<std::uint32_t>(capacity),
          static_cast<std::uint32_t>(keep)});
    tops_.resize(padded, {nullptr, 0, 1, 1});
  }

  // queries and keys are those of the whole batch and the whole store.
  void run(const float* queries, const Half* keys, std::size_t width, bool l2) {
    queries += first_query * width;
    keys += first_row_ * width;
    if (n < kFewest) {
      for (std::size_t begin = 0; begin < rows_; begin += kBlock)
        for (std::size_t q = 0; q < n; ++q)
          exact::score_rows(queries + q * width, keys + begin * width,
              std::min<std::size_t>(kBlock, rows_ - begin), width, l2,
              static_cast<std::uint32_t>(first_row_ + begin), thresholds_[q], tops_[q]);
      return;
    }
    std::vector<float> panels(tops_.size() * width);
    for (std::size_t q = 0; q < n; q += kPanel)
      exact::pack_panel(
          queries + q * width, std::min<std::size_t>(kPanel, n - q), width, &panels[q * width]);
    std::vector<float> block((kBlock + exact::kTile) * exact::stride_of(width)),
        half_norms(kBlock + exact::kTile);
    for (std::size_t begin = 0; begin < rows_; begin += kBlock) {
      const std::size_t m = std::min<std::size_t>(kBlock, rows_ - begin);
      exact::widen_block(
          keys + begin * width, m, width, block.data(), l2 ? half_norms.data() : nullptr);
      for (std::size_t q = 0; q < n; q += kPanel)
        exact::score_block(&panels[q * width], block.data(), m, width,
            l2 ? half_norms.data() : nullptr, static_cast<std::uint32_t>(first_row_ + begin),
            &thresholds_[q], &tops_[q]);
    }
  }

  // Returns the hits of query `q`, counted from the job's first query.
  std::span<const Hit> hits(std::size_t q) const { return {tops_[q].hits, tops_[q].size}; }

  const std::size_t first_query, n;

 private:
  std::size_t first_row_, rows_;
  std::unique_ptr<Hit[]> hits_;
  std::vector<exact::Top> tops_;
  std::vector<float> thresholds_;
};

// Returns the unordered hits of each query among all keys. These are the hits above its threshold:
// the best `keep` and some more.
std::vector<Job> run_jobs(std::span<const float> queries, const Half* keys, std::size_t rows,
    std::size_t width, bool l2, std::size_t keep, const float* thresholds, std::size_t threads) {
  const std::size_t n = queries.size() / width;
  threads = std::clamp<std::size_t>(n * rows * width / kProductsPerThread, 1, threads);
  std::vector<Job> jobs;
  const bool by_query = n >= threads * kPanel;
  const std::size_t units = by_query ? (n + kPanel - 1) / kPanel : (rows + kBlock - 1) / kBlock;
  const std::size_t unit = by_query ? kPanel : kBlock, all = by_query ? n : rows;
  for (std::size_t t = 0; t < threads; ++t) {
    const std::size_t begin = std::min(units * t / threads * unit, all);
    const std::size_t end = std::min(units * (t + 1) / threads * unit, all);
    if (by_query) {
      jobs.emplace_back(
          begin, end - begin, 0, rows, keep, thresholds ? thresholds + begin : nullptr);
    } else {
      jobs.emplace_back(0, n, begin, end - begin, keep, thresholds);
    }
  }
  parallel(jobs.size(), [&](std::size_t t) { jobs[t].run(queries.data(), keys, width, l2); });
  return jobs;
}

// Returns the best `keep` hits of one query, best first.
void collect(const std::vector<Job>& jobs, std::size_t query, std::size_t keep,
    std::vector<Hit>& out, std::vector<Hit>& spare) {
  out.clear();
  for (const Job& job : jobs) {
    if (query < job.first_query || query >= job.first_query + job.n) continue;
    const auto hits = job.hits(query - job.first_query);
    out.insert(out.end(), hits.begin(), hits.end());
  }
  if (out.size() > keep) {
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(keep) - 1, out.end(),
        std::greater<>());
    out.resize(keep);
  }
  sort_hits(out, spare);
}

}  // namespace

ExactSearch::ExactSearch(std::span<const Half> keys, std::int64_t width, Metric metric)
    : keys_(keys), width_(static_cast<std::size_t>(width)), rows_(keys.size() / width_),
      metric_(metric) {
  if (rows_ >= std::size_t{1} << 32)
    core::fail(core::Code::unavailable, "exact search takes fewer than 2^32 rows, not {}", rows_);
}

const std::vector<Half>& ExactSearch::sample() const {
  std::call_once(sampled_, [&] {
    const std::size_t n = sample_size(rows_);
    sample_.resize(n * width_);
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(&keys_[i * rows_ / n * width_], width_, &sample_[i * width_]);
  });
  return sample_;
}

// Returns thresholds below the k-th best score of nearly every query. Each is the sample's score
// whose expected rank is k, lowered by four standard deviations. Returns none if thresholds save
// nothing.
std::vector<float> ExactSearch::sampled_thresholds(
    std::span<const float> queries, std::size_t k, std::size_t threads) const {
  const std::size_t size = sample_size(rows_);
  const double expected =
      static_cast<double>(k) * static_cast<double>(size) / static_cast<double>(rows_);
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (rows_ < 4 * size || rank * 4 > size) return {};
  const auto jobs = run_jobs(
      queries, sample().data(), size, width_, metric_ == Metric::l2, rank, nullptr, threads);
  std::vector<float> thresholds(queries.size() / width_);
  std::vector<Hit> best, spare;
  for (std::size_t q = 0; q < thresholds.size(); ++q) {
    collect(jobs, q, rank, best, spare);
    thresholds[q] =
        best.size() < rank ? kLowest : std::nextafter(exact::score_of(best.back()), kLowest);
  }
  return thresholds;
}

void ExactSearch::search_batch(std::span<const float> queries, std::size_t k, std::size_t threads,
    std::span<std::int64_t> ids, std::span<float> scores) const {
  const std::size_t keep = std::min(k, rows_);
  const bool l2 = metric_ == Metric::l2;
  const auto thresholds = sampled_thresholds(queries, keep, threads);
  const auto jobs = run_jobs(queries, keys_.data(), rows_, width_, l2, keep,
      thresholds.empty() ? nullptr : thresholds.data(), threads);
  const std::size_t n = queries.size() / width_;
  const auto finish = [&](std::size_t q, std::vector<Hit>& best, std::vector<Hit>& spare) {
    const auto query = queries.subspan(q * width_, width_);
    collect(jobs, q, keep, best, spare);
    if (best.size() < keep && !thresholds.empty())  // the sampled threshold was too high
      collect(run_jobs(query, keys_.data(), rows_, width_, l2, keep, nullptr, threads), 0, keep,
          best, spare);
    float norm = 0;
    for (const float x : query) norm += x * x;
    for (std::size_t i = 0; i < k; ++i) {
      const bool hit = i < best.size();
      const float score = hit ? exact::score_of(best[i]) : kLowest;
      ids[q * k + i] = hit ? static_cast<std::int64_t>(exact::row_of(best[i])) : -1;
      scores[q * k + i] = hit && l2 ? 2 * score - norm : score;
    }
  };
  parallel(std::min(threads, n), [&](std::size_t t) {
    std::vector<Hit> best, spare;
    for (std::size_t q = t; q < n; q += threads) finish(q, best, spare);
  });
}

void ExactSearch::search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
    std::span<std::int64_t> ids, std::span<float> scores) const {
  const auto kept = static_cast<std::size_t>(k);
  const std::size_t n = queries.size() / width_;
  if (rows_ == 0) {
    std::ranges::fill(ids, -1);
    std::ranges::fill(scores, kLowest);
    return;
  }
  const std::size_t workers = threads > 0 ? static_cast<std::size_t>(threads)
                                          : std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t begin = 0; begin < n; begin += kBatch) {
    const std::size_t m = std::min(kBatch, n - begin);
    search_batch(queries.subspan(begin * width_, m * width_), kept, workers,
        ids.subspan(begin * kept, m * kept), scores.subspan(begin * kept, m * kept));
  }
}

}  // namespace store
