#include "nn/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace nn {
namespace {

using torch::Tensor;

struct Ids {
  const std::int64_t *run, *segment, *position;
  std::int64_t size;
  explicit Ids(const Place& place)
      : run(place.run.const_data_ptr<std::int64_t>()),
        segment(place.segment.const_data_ptr<std::int64_t>()),
        position(place.position.const_data_ptr<std::int64_t>()),
        size(place.size()) {}
};

Place contiguous(const Place& place) {
  return {place.run.contiguous(), place.segment.contiguous(), place.position.contiguous()};
}

// Smallest and largest run, segment and position of a block of tokens, padding left out.
struct Summary {
  std::int64_t run_min = std::numeric_limits<std::int64_t>::max(), run_max = -1;
  std::int64_t segment_min = std::numeric_limits<std::int64_t>::max(), segment_max = -1;
  std::int64_t position_min = std::numeric_limits<std::int64_t>::max(), position_max = -1;

  Summary(const Ids& ids, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (ids.run[i] < 0) continue;
      run_min = std::min(run_min, ids.run[i]), run_max = std::max(run_max, ids.run[i]);
      segment_min = std::min(segment_min, ids.segment[i]),
      segment_max = std::max(segment_max, ids.segment[i]);
      position_min = std::min(position_min, ids.position[i]),
      position_max = std::max(position_max, ids.position[i]);
    }
  }
  bool empty() const { return run_max < 0; }
};

// False only if no pair of the two blocks can see each other.
bool may_see(const Summary& q, const Summary& e, const MemoryRule& rule) {
  if (q.empty() || e.empty()) return false;
  const bool one_run = q.run_min == q.run_max && e.run_min == e.run_max && q.run_min == e.run_min;
  if (rule.ext && !one_run) return true;
  const bool runs_meet = q.run_min <= e.run_max && e.run_min <= q.run_max;
  if (!runs_meet || e.position_min >= q.position_max) return false;
  if (rule.far && (rule.reach == 0 || e.position_max >= q.position_min - rule.reach)) {
    const bool one_segment = q.segment_min == q.segment_max && e.segment_min == e.segment_max &&
                             q.segment_min == e.segment_min;
    if (!(rule.drop_own_segment && one_run && one_segment)) return true;
  }
  return rule.local && !rule.drop_own_segment && q.segment_min <= e.segment_max &&
         e.segment_min <= q.segment_max;
}

// (R, M) scores, temperature and width applied.
Tensor scores_of(const Tensor& queries, const Tensor& keys, Metric metric, double scale) {
  Tensor scores = torch::mm(queries, keys.t());
  if (metric == Metric::ip) return scores.mul_(scale);
  scores.mul_(2 * scale);
  scores.sub_(queries.square().sum(1, /*keepdim=*/true).mul_(scale));
  return scores.sub_(keys.square().sum(1).mul_(scale));
}

double scale_of(const MemoryRule& rule, std::int64_t width) {
  return 1 /
         (rule.temperature * (rule.scale_by_width ? std::sqrt(static_cast<double>(width)) : 1.0));
}

// Hides all but the k best of each row (ties with the k-th stay).
void keep_top_k(Tensor& scores, std::int64_t k) {
  if (k <= 0 || scores.size(1) <= k) return;
  const Tensor threshold = std::get<0>(scores.topk(k, 1)).select(1, k - 1).unsqueeze(1);
  scores.masked_fill_(scores < threshold, kUnseen);
}

// x becomes e^x. What float32 cannot hold is 0, without MKL's slow path for it: masked scores are
// half of a causal block, and took a sixth of a training step there (perf: vsexp_cout_rare,
// sError).
void exp_in_place(Tensor& x) {
  if (x.scalar_type() != torch::kFloat32 || !x.is_cpu()) {
    x.exp_();
    return;
  }
  constexpr double kLeast = -87;  // e^-87 is a normal number still
  const Tensor vanishes = x < kLeast;
  x.clamp_min_(kLeast).exp_().masked_fill_(vanishes, 0);
}

// sum of exp -> log-mass, finite where nothing was seen.
Tensor log_mass(const Tensor& sum, const Tensor& max) {
  return torch::where(sum > 0, sum.log() + max, torch::full_like(sum, kUnseen));
}

// d / sum, 0 where nothing was seen.
Tensor share(const Tensor& d, const Tensor& sum) {
  return torch::where(sum > 0, d / sum, torch::zeros_like(sum)).unsqueeze(1);
}

}  // namespace

bool MemoryRule::sees(std::int64_t query_run, std::int64_t query_segment,
                      std::int64_t query_position, std::int64_t entry_run,
                      std::int64_t entry_segment, std::int64_t entry_position) const {
  if (query_run < 0 || entry_run < 0) return false;
  if (query_run != entry_run) return ext;
  if (entry_position >= query_position) return false;
  const bool own_segment = query_segment == entry_segment;
  if (own_segment && drop_own_segment) return false;
  return (local && own_segment) ||
         (far && (reach == 0 || query_position - entry_position <= reach));
}

MemoryRule MemoryRule::parse(const std::string& names) {
  MemoryRule rule;
  if (names == "none") return rule;
  std::size_t begin = 0;
  while (begin <= names.size()) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    if (name == "local") {
      rule.local = true;
    } else if (name == "long") {
      rule.far = true;
    } else if (name == "ext") {
      rule.ext = true;
    } else {
      core::fail(core::Code::usage,
                 "memory '{}': takes none, or a sum of local, long, ext (write local,long)", names);
    }
    begin = end + 1;
  }
  return rule;
}

std::string MemoryRule::name() const {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (!on) return;
    if (!text.empty()) text += ',';
    text += name;
  };
  add(local, "local");
  add(far, "long");
  add(ext, "ext");
  return text.empty() ? "none" : text;
}

std::vector<std::pair<std::int64_t, std::int64_t>> visible_spans(const Place& queries,
                                                                 const Place& entries,
                                                                 const MemoryRule& rule,
                                                                 std::int64_t granularity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  if (!rule.any()) return spans;
  const Place q = contiguous(queries), e = contiguous(entries);
  const Summary query(Ids(q), 0, q.size());
  const Ids ids(e);
  for (std::int64_t begin = 0; begin < ids.size; begin += granularity) {
    const std::int64_t end = std::min(begin + granularity, ids.size);
    if (!may_see(query, Summary(ids, begin, end), rule)) continue;
    if (!spans.empty() && spans.back().second == begin) {
      spans.back().second = end;
    } else {
      spans.emplace_back(begin, end);
    }
  }
  return spans;
}

Tensor visibility(const Place& queries, const Place& entries, const MemoryRule& rule) {
  const Place q_place = contiguous(queries), e_place = contiguous(entries);
  const Ids q(q_place), e(e_place);
  Tensor visible = torch::empty({q.size, e.size}, torch::kBool);
  bool* const out = visible.data_ptr<bool>();
  const std::int64_t reach = rule.reach > 0 ? rule.reach : std::numeric_limits<std::int64_t>::max();
  at::parallel_for(
      0, q.size, 1 + (1 << 16) / (1 + e.size), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t run = q.run[i], segment = q.segment[i], position = q.position[i];
          bool* const row = out + i * e.size;
          const bool real = run >= 0, local = rule.local, far = rule.far, ext = rule.ext,
                     keep = !rule.drop_own_segment;
          for (std::int64_t j = 0; j < e.size;
               ++j) {  // MemoryRule::sees without branches, so that it vectorises
            const bool same = e.run[j] == run, own = e.segment[j] == segment;
            const bool earlier = e.position[j] < position, near = position - e.position[j] <= reach;
            const bool inside = same & earlier & ((local & own) | (far & near)) & (keep | !own);
            row[j] = real & (e.run[j] >= 0) & (inside | (ext & !same));
          }
        }
      });
  return visible;
}

MemoryBlock::MemoryBlock(const Tensor& queries, const Place& place, const Tensor& targets,
                         const Entries& entries, const MemoryRule& rule)
    : entries_(entries), rule_(rule), queries_(queries), scale_(scale_of(rule, queries.size(1))) {
  auto ranges = visible_spans(place, entries.place, rule);
  if (rule.top_k > 0 && ranges.size() > 1) ranges = {{ranges.front().first, ranges.back().second}};
  Tensor max = torch::full({queries.size(0)}, kUnseen / 2, queries.options());
  for (const auto& [begin, end] : ranges) {
    Tensor scores = scores_of(queries, entries.keys.slice(0, begin, end), rule.metric, scale_);
    const Tensor hidden = visibility(place, entries.place.slice(begin, end), rule).logical_not_();
    scores.masked_fill_(hidden.to(scores.device()), kUnseen);
    keep_top_k(scores, rule.top_k);
    max = torch::maximum(max, scores.amax(1));
    const Tensor match = targets.unsqueeze(1) == entries.labels.slice(0, begin, end).unsqueeze(0);
    spans_.push_back({begin, end, scores, match});
  }
  sum_all_ = torch::zeros_like(max);
  sum_positive_ = torch::zeros_like(max);
  for (auto& span : spans_) {
    exp_in_place(span.exp_scores.sub_(max.unsqueeze(1)));
    sum_all_.add_(span.exp_scores.sum(1));
    sum_positive_.add_(span.exp_scores.mul(span.match).sum(1));
  }
  all = log_mass(sum_all_, max);
  positive = log_mass(sum_positive_, max);
}

Tensor MemoryBlock::backward(const Tensor& d_all, const Tensor& d_positive, Tensor& d_keys) {
  Tensor d_queries = torch::zeros_like(queries_);
  const Tensor every = share(d_all, sum_all_).mul_(scale_),
               matching = share(d_positive, sum_positive_).mul_(scale_);
  const double sign = rule_.metric == Metric::ip ? 1 : 2;
  for (auto& span : spans_) {
    const Tensor d = span.exp_scores.mul_(
        torch::where(span.match, every + matching, every));  // dL/d (q.k) for ip
    const Tensor keys = entries_.keys.slice(0, span.begin, span.end);
    d_queries.addmm_(d, keys, 1, sign);
    if (rule_.metric == Metric::l2) d_queries.sub_(queries_ * d.sum(1, true), sign);
    if (!rule_.gradient) continue;
    Tensor d_span = d_keys.slice(0, span.begin, span.end);
    d_span.addmm_(d.t(), queries_, 1, sign);
    if (rule_.metric == Metric::l2) d_span.sub_(keys * d.sum(0).unsqueeze(1), sign);
  }
  return d_queries;
}

Tensor memory_log_masses(const Tensor& queries, const Place& place, const Entries& entries,
                         const MemoryRule& rule, std::int64_t vocabulary) {
  Tensor masses = torch::zeros({queries.size(0), vocabulary}, queries.options());
  if (entries.size() == 0 || !rule.any()) return masses.fill_(kUnseen);
  Tensor scores = scores_of(queries, entries.keys, rule.metric, scale_of(rule, queries.size(1)));
  const Tensor hidden = visibility(place, entries.place, rule).logical_not_();
  scores.masked_fill_(hidden.to(scores.device()), kUnseen);
  keep_top_k(scores, rule.top_k);
  const Tensor max = scores.amax(1, true).clamp_min_(kUnseen / 2);
  exp_in_place(scores.sub_(max));
  masses.index_add_(1, entries.labels, scores);
  return log_mass(masses, max);
}

}  // namespace nn
