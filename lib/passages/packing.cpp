#include "passages/packing.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"

namespace passages {
namespace {

bool among_hits(const Hits& hits, std::uint32_t query, std::uint32_t unit) {
  return std::ranges::any_of(hits.of(query), [&](const Hit& hit) { return hit.unit == unit; });
}

}  // namespace

UnitOrder random_order(std::uint32_t units, std::uint64_t seed) {
  UnitOrder order(units);
  std::iota(order.begin(), order.end(), 0u);
  core::Rng(seed).shuffle(order);
  return order;
}

UnitOrder greedy_chain(const Hits& hits, std::uint64_t seed) {
  const auto shuffled = random_order(hits.queries(), seed);
  std::vector<bool> used(shuffled.size());
  UnitOrder order;
  order.reserve(shuffled.size());
  for (const auto start : shuffled) {
    if (used[start]) continue;
    for (std::uint32_t unit = start;;) {
      used[unit] = true;
      order.push_back(unit);
      const auto best = hits.of(unit);
      const auto next = std::ranges::find_if(best, [&](const Hit& hit) { return !used[hit.unit]; });
      if (next == best.end()) break;
      unit = next->unit;
    }
  }
  return order;
}

OrderWorth worth_of(const UnitOrder& order, const Bm25& bm25, const Hits& hits) {
  OrderWorth worth;
  double sum = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const bool link =
        among_hits(hits, order[i - 1], order[i]) || among_hits(hits, order[i], order[i - 1]);
    ++(link ? worth.links : worth.jumps);
    sum += bm25.score(order[i - 1], order[i]);
  }
  if (order.size() > 1) worth.mean_score = sum / static_cast<double>(order.size() - 1);
  return worth;
}

}  // namespace passages
