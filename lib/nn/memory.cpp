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

}  // namespace nn
