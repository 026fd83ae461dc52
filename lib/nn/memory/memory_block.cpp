#include "nn/memory/memory_block.h"

#include "nn/base/cuda.h"
#include "nn/base/upload.h"
#include "nn/ops/entry_products.h"

namespace nn {
namespace {

static_assert(sizeof(PositionRange) == 7 * sizeof(std::int64_t));

// The pointers are in the memory of the host or of the device.
PositionIds ids_of(const TokenPositions& place) {
  return {place.run.const_data_ptr<std::int64_t>(), place.segment.const_data_ptr<std::int64_t>(),
      place.position.const_data_ptr<std::int64_t>(), place.size()};
}

constexpr std::int64_t kPart = 128;        // queries of a part
constexpr std::int64_t kPartThere = 1024;  // on a device, where launches are costly

// Returns the factor that scores_of() leaves out.
float factor_of(const MemoryRule& rule, double scale) {
  return rule.metric == Metric::ip ? static_cast<float>(scale) : 1.0F;
}

double scale_of(const MemoryRule& rule, std::int64_t width) {
  return 1 /
         (rule.temperature * (rule.scale_by_width ? std::sqrt(static_cast<double>(width)) : 1.0));
}

// Returns the scores (R, M), multiplied by the scale for l2 but not for ip.
Tensor products(const Tensor& queries, const Tensor& keys, Metric metric, double scale) {
  Tensor scores = entry_products(queries, keys);
  if (metric == Metric::ip) return scores;
  scores.mul_(2 * scale);
  scores.sub_(queries.square().sum(1, /*keepdim=*/true).mul_(scale));
  return scores.sub_(keys.square().sum(1).mul_(scale));
}

// Returns the scaled scores, kUnseen where the rule hides an entry.
Tensor masked_scores(const Tensor& queries, const TokenPositions& place, const Tensor& keys,
    const TokenPositions& entries, const MemoryRule& rule, double scale) {
  Tensor scores = products(queries, keys, rule.metric, scale);
  if (rule.metric == Metric::ip) scores.mul_(scale);
  const Tensor hidden = visibility(place, entries, rule).logical_not_();
  scores.masked_fill_(upload(hidden, scores.device()), kUnseen);
  if (rule.top_k > 0 && scores.size(1) > rule.top_k) {  // keeps all ties with the k-th score
    const Tensor least = std::get<0>(scores.topk(rule.top_k, 1)).select(1, rule.top_k - 1);
    scores.masked_fill_(scores < least.unsqueeze(1), kUnseen);
  }
  return scores;
}

// Returns the log-mass of a sum of exponentials. It is finite if no entry was visible.
Tensor log_mass(const Tensor& sum, const Tensor& max) {
  return torch::where(sum > 0, sum.log() + max, torch::full_like(sum, kUnseen));
}

// Whether SeenScores computes the masses: float32 on the CPU without top-k.
bool sums_seen(const Tensor& queries, const MemoryRule& rule) {
  return in_host_memory(queries) && queries.scalar_type() == torch::kFloat32 && rule.top_k == 0;
}

// Products of a part of the queries with the entries from `begin` on.
struct SpanScores {
  std::int64_t begin;
  TokenPositions place;  // of the entries, contiguous
  Tensor scores;
};

// Returns d / sum, or 0 if no entry was visible.
Tensor share(const Tensor& d, const Tensor& sum) {
  return torch::where(sum > 0, d / sum, torch::zeros_like(sum));
}

}  // namespace

TokenPositions contiguous(const TokenPositions& place) {
  return {place.run.contiguous(), place.segment.contiguous(), place.position.contiguous()};
}

PositionPair::PositionPair(
    const TokenPositions& asking, const TokenPositions& asked, torch::Device device) {
  const auto split = asking.size();
  const auto joined = TokenPositions::concatenate({asking, asked});
  const auto all = upload(torch::stack({joined.run, joined.segment, joined.position}), device);
  const TokenPositions there = {all[0], all[1], all[2]};
  queries = there.slice(0, split);
  entries = there.slice(split, split + asked.size());
  tiles = torch::empty({seen_tiles(asked.size()), 7}, all.options());
  const auto like = torch::empty({0}, all.options().dtype(torch::kFloat32));
  check_launch(cuda_kernels(like)->seen_tiles(ids_of(entries),
                   static_cast<PositionRange*>(tiles.data_ptr()), cuda_stream(like)),
      "seen_tiles");
}

SeenRows PositionPair::rows(
    std::int64_t begin, std::int64_t end, const VisibilityRule& rule) const {
  SeenRows rows{};
  rows.queries = ids_of(queries);
  rows.entries = ids_of(entries.slice(begin, end));
  rows.tiles = static_cast<const PositionRange*>(tiles.const_data_ptr()) + begin / kSeenTile;
  rows.rule = rule;
  return rows;
}

SeenScores seen_scores(
    const TokenPositions& queries, const TokenPositions& entries, const MemoryRule& rule) {
  return {ids_of(queries), ids_of(entries), rule};
}

std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const TokenPositions& queries,
    const TokenPositions& entries, const MemoryRule& rule, std::int64_t granularity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  if (!rule.any()) return spans;
  const TokenPositions q = contiguous(queries), e = contiguous(entries);
  const PositionRange asking = range_of(ids_of(q), 0, q.size());
  const PositionIds ids = ids_of(e);
  for (std::int64_t begin = 0; begin < ids.size; begin += granularity) {
    const std::int64_t end = std::min(begin + granularity, ids.size);
    if (range_visibility(rule, asking, range_of(ids, begin, end)) == Seen::none) continue;
    if (!spans.empty() && spans.back().second == begin) {
      spans.back().second = end;
    } else {
      spans.emplace_back(begin, end);
    }
  }
  return spans;
}

torch::Tensor visibility(
    const TokenPositions& queries, const TokenPositions& entries, const MemoryRule& rule) {
  const TokenPositions q = contiguous(queries), e = contiguous(entries);
  torch::Tensor visible = torch::empty({q.size(), e.size()}, torch::kBool);
  bool* const out = visible.data_ptr<bool>();
  const SeenScores seen = seen_scores(q, e, rule);
  at::parallel_for(
      0, q.size(), 1 + (1 << 16) / (1 + e.size()), [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) seen.visible(i, out + i * e.size());
      });
  return visible;
}

MemoryBlock::MemoryBlock(const Tensor& queries, const TokenPositions& place, const Tensor& targets,
    const Entries& entries, const MemoryRule& rule, const PositionPair* position_pair)
    : entries_(entries), rule_(rule), by_(chosen(queries, rule)),
      scale_(scale_of(rule, queries.size(1))), queries_(queries) {
  const std::int64_t rows = queries.size(0);
  max_ = torch::full({rows}, kUnseen / 2, queries.options());
  sum_all_ = torch::zeros({rows}, queries.options());
  sum_positive_ = torch::zeros({rows}, queries.options());
  if (by_ != By::masks) {
    const auto type = by_ == By::loops ? torch::kInt32 : torch::kInt64;
    labels_ = entries.labels.to(type).contiguous();
    targets_ = targets.to(type).contiguous();
  }
  if (by_ == By::kernels)
    position_pair_ = position_pair != nullptr
                         ? *position_pair
                         : PositionPair(place, entries.place, queries.device());
  const std::int64_t most = by_ == By::kernels ? kPartThere : kPart;
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t end = std::min(begin + most, rows);
    Part part{begin, end, contiguous(place.slice(begin, end)), {}};
    auto ranges = visible_spans(part.place, entries.place, rule);
    if (rule.top_k > 0 && ranges.size() > 1)
      ranges = {{ranges.front().first, ranges.back().second}};
    for (const auto& [first, last] : ranges)
      part.spans.push_back({first, last, contiguous(entries.place.slice(first, last)), {}, {}});
    if (by_ == By::loops) sum_seen(part);
    else if (by_ == By::kernels) sum_there(part);
    else sum_masked(part, targets.slice(0, begin, end));
    parts_.push_back(std::move(part));
  }
  all = log_mass(sum_all_, max_);
  positive = log_mass(sum_positive_, max_);
}

bool MemoryBlock::by_kernels(const Tensor& queries, const MemoryRule& rule) {
  return chosen(queries, rule) == By::kernels;
}

MemoryBlock::By MemoryBlock::chosen(const Tensor& queries, const MemoryRule& rule) {
  if (sums_seen(queries, rule)) return By::loops;
  return cuda_kernels(queries) != nullptr && rule.top_k == 0 ? By::kernels : By::masks;
}

// The caller must multiply by factor_of().
Tensor MemoryBlock::scores(const Part& part, const Span& span) const {
  return products(queries_.slice(0, part.begin, part.end),
      entries_.keys.slice(0, span.begin, span.end), rule_.metric, scale_);
}

void MemoryBlock::sum_masked(Part& part, const Tensor& targets) {
  Tensor max = max_.slice(0, part.begin, part.end);
  for (auto& span : part.spans) {
    span.exp_scores = masked_scores(queries_.slice(0, part.begin, part.end), part.place,
        entries_.keys.slice(0, span.begin, span.end), span.place, rule_, scale_);
    span.match =
        targets.unsqueeze(1) == entries_.labels.slice(0, span.begin, span.end).unsqueeze(0);
    max.copy_(torch::maximum(max, span.exp_scores.amax(1)));
  }
  for (auto& span : part.spans) {
    span.exp_scores.sub_(max.unsqueeze(1)).exp_();
    sum_all_.slice(0, part.begin, part.end).add_(span.exp_scores.sum(1));
    sum_positive_.slice(0, part.begin, part.end).add_(span.exp_scores.mul(span.match).sum(1));
  }
}

void MemoryBlock::sum_seen(Part& part) {
  const float factor = factor_of(rule_, scale_);
  float* const max = max_.data_ptr<float>() + part.begin;
  for (auto& span : part.spans) {
    span.exp_scores = scores(part, span);
    const SeenScores seen = seen_scores(part.place, span.place, rule_);
    const float* const scores = span.exp_scores.const_data_ptr<float>();
    at::parallel_for(0, part.place.size(), 1,
        [&](std::int64_t begin, std::int64_t end) { seen.raise(scores, factor, begin, end, max); });
  }
  for (auto& span : part.spans) {
    const SeenScores seen = seen_scores(part.place, span.place, rule_);
    float* const scores = span.exp_scores.data_ptr<float>();
    float *const sum_all = sum_all_.data_ptr<float>() + part.begin,
                 *const sum_positive = sum_positive_.data_ptr<float>() + part.begin;
    const auto *const labels = labels_.const_data_ptr<std::int32_t>() + span.begin,
                      *const targets = targets_.const_data_ptr<std::int32_t>() + part.begin;
    at::parallel_for(0, part.place.size(), 1, [&](std::int64_t begin, std::int64_t end) {
      seen.exponentiate(scores, factor, max, labels, targets, begin, end, sum_all, sum_positive);
    });
  }
}

SeenRows MemoryBlock::rows_of(const Part& part, const Span& span) const {
  auto rows = position_pair_->of(part.begin, part.end).rows(span.begin, span.end, rule_);
  rows.scores = span.exp_scores.data_ptr<float>();
  rows.scale = factor_of(rule_, scale_);
  rows.targets = targets_.const_data_ptr<std::int64_t>() + part.begin;
  rows.labels = labels_.const_data_ptr<std::int64_t>() + span.begin;
  return rows;
}

void MemoryBlock::sum_there(Part& part) {
  const auto* const kernels = cuda_kernels(queries_);
  void* const stream = cuda_stream(queries_);
  float* const max = max_.data_ptr<float>() + part.begin;
  for (auto& span : part.spans) {
    span.exp_scores = scores(part, span);
    check_launch(kernels->seen_raise(rows_of(part, span), max, stream), "seen_raise");
  }
  for (auto& span : part.spans)
    check_launch(kernels->seen_exponentiate(rows_of(part, span), max,
                     sum_all_.data_ptr<float>() + part.begin,
                     sum_positive_.data_ptr<float>() + part.begin, stream),
        "seen_exponentiate");
}

// Replaces exp_scores by dL/d (q.k).
void MemoryBlock::backward_masked(
    const Part& part, Span& span, const Tensor& every, const Tensor& matching) const {
  const Tensor all = every.slice(0, part.begin, part.end).unsqueeze(1),
               hit = matching.slice(0, part.begin, part.end).unsqueeze(1);
  span.exp_scores.mul_(torch::where(span.match, all + hit, all));
}

void MemoryBlock::backward_seen(
    const Part& part, Span& span, const Tensor& every, const Tensor& matching) const {
  const SeenScores seen = seen_scores(part.place, span.place, rule_);
  float* const exp = span.exp_scores.data_ptr<float>();
  const float *const all = every.const_data_ptr<float>() + part.begin,
                     *const hit = matching.const_data_ptr<float>() + part.begin;
  const auto *const labels = labels_.const_data_ptr<std::int32_t>() + span.begin,
                    *const targets = targets_.const_data_ptr<std::int32_t>() + part.begin;
  at::parallel_for(0, part.place.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    seen.differentiate(exp, labels, targets, all, hit, begin, end);
  });
}

void MemoryBlock::backward_there(
    const Part& part, Span& span, const Tensor& every, const Tensor& matching) const {
  check_launch(cuda_kernels(queries_)->seen_differentiate(rows_of(part, span),
                   every.const_data_ptr<float>() + part.begin,
                   matching.const_data_ptr<float>() + part.begin, cuda_stream(queries_)),
      "seen_differentiate");
}

Tensor MemoryBlock::backward(const Tensor& d_all, const Tensor& d_positive, Tensor& d_keys) {
  Tensor d_queries = torch::zeros_like(queries_);
  const double slope = rule_.metric == Metric::ip ? scale_ : 2 * scale_;
  const Tensor every = share(d_all, sum_all_).mul_(slope).contiguous(),
               matching = share(d_positive, sum_positive_).mul_(slope).contiguous();
  for (auto& part : parts_) {
    const Tensor queries = queries_.slice(0, part.begin, part.end);
    Tensor d_part = d_queries.slice(0, part.begin, part.end);
    for (auto& span : part.spans) {
      if (by_ == By::loops) backward_seen(part, span, every, matching);
      else if (by_ == By::kernels) backward_there(part, span, every, matching);
      else backward_masked(part, span, every, matching);
      const Tensor& d = span.exp_scores;
      const Tensor keys = entries_.keys.slice(0, span.begin, span.end);
      add_query_gradient(d, keys, d_part);
      if (rule_.metric == Metric::l2) d_part.sub_(queries * d.sum(1, true));
      if (!rule_.gradient) continue;
      Tensor d_span = d_keys.slice(0, span.begin, span.end);
      add_entry_gradient(d, queries, d_span);
      if (rule_.metric == Metric::l2) d_span.sub_(keys * d.sum(0).unsqueeze(1));
    }
  }
  return d_queries;
}

Masses tempered_masses(const Tensor& queries, const TokenPositions& place, const Tensor& targets,
    const Entries& entries, const MemoryRule& rule, const std::vector<double>& temperatures) {
  const auto n = static_cast<std::int64_t>(temperatures.size()), rows = queries.size(0);
  if (n == 1 || !sums_seen(queries, rule) || rule.metric != Metric::ip) {
    std::vector<Tensor> all, positive;
    MemoryRule at = rule;
    for (const double temperature : temperatures) {
      at.temperature = temperature;
      const MemoryBlock block(queries, place, targets, entries, at);
      all.push_back(block.all);
      positive.push_back(block.positive);
    }
    return {torch::stack(all), torch::stack(positive)};
  }
  std::vector<float> scales;
  MemoryRule plain = rule;
  plain.temperature = 1;
  for (const double temperature : temperatures)
    scales.push_back(static_cast<float>(scale_of(plain, queries.size(1)) / temperature));
  const Tensor max = torch::full({rows}, kUnseen / 2, queries.options()),
               all = torch::zeros({n, rows}, queries.options()), positive = torch::zeros_like(all),
               labels = entries.labels.to(torch::kInt32).contiguous(),
               own = targets.to(torch::kInt32).contiguous();
  for (std::int64_t begin = 0; begin < rows; begin += kPart) {
    const std::int64_t end = std::min(begin + kPart, rows);
    const TokenPositions part = contiguous(place.slice(begin, end));
    std::vector<SpanScores> spans;
    for (const auto& [first, last] : visible_spans(part, entries.place, rule))
      spans.push_back({first, contiguous(entries.place.slice(first, last)),
          products(
              queries.slice(0, begin, end), entries.keys.slice(0, first, last), rule.metric, 1)});
    float* const maxima = max.data_ptr<float>() + begin;
    for (const SpanScores& span : spans) {
      const SeenScores seen = seen_scores(part, span.place, rule);
      at::parallel_for(0, end - begin, 1, [&](std::int64_t from, std::int64_t to) {
        seen.raise(span.scores.const_data_ptr<float>(), 1, from, to, maxima);
      });
    }
    for (const SpanScores& span : spans) {
      const SeenScores seen = seen_scores(part, span.place, rule);
      at::parallel_for(0, end - begin, 1, [&](std::int64_t from, std::int64_t to) {
        seen.sum(span.scores.const_data_ptr<float>(), scales, maxima,
            labels.const_data_ptr<std::int32_t>() + span.begin,
            own.const_data_ptr<std::int32_t>() + begin, from, to, all.data_ptr<float>() + begin,
            positive.data_ptr<float>() + begin, rows);
      });
    }
  }
  const Tensor scaled = torch::tensor(scales).unsqueeze(1) * max;
  return {log_mass(all, scaled), log_mass(positive, scaled)};
}

Tensor memory_log_masses(const Tensor& queries, const TokenPositions& place, const Entries& entries,
    const MemoryRule& rule, std::int64_t vocabulary) {
  Tensor masses = torch::zeros({queries.size(0), vocabulary}, queries.options());
  if (entries.size() == 0 || !rule.any()) return masses.fill_(kUnseen);
  Tensor scores = masked_scores(
      queries, place, entries.keys, entries.place, rule, scale_of(rule, queries.size(1)));
  const Tensor max = scores.amax(1, true).clamp_min_(kUnseen / 2);
  masses.index_add_(1, entries.labels, scores.sub_(max).exp_());
  return log_mass(masses, max);
}

}  // namespace nn
