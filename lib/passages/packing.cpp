#include "passages/packing.h"

#include "core/parallel.h"
#include "core/rng.h"

namespace passages {
namespace {

bool among_hits(const Hits& hits, std::uint32_t query, std::uint32_t unit) {
  return std::ranges::any_of(hits.of(query), [&](const Hit& hit) { return hit.unit == unit; });
}

constexpr std::uint32_t kPart = 4096;  // units per task

const Hit* find(const Hits& hits, std::uint32_t query, std::uint32_t unit) {
  const auto of = hits.of(query);
  const auto found = std::ranges::find(of, unit, &Hit::unit);
  return found == of.end() ? nullptr : &*found;
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

HitGraph::HitGraph(const Bm25& bm25, const Hits& hits, int jobs)
    : begin_(std::size_t{hits.queries()} + 1) {
  const std::uint32_t n = hits.queries();
  std::vector<std::vector<Edge>> parts((n + kPart - 1) / kPart);
  core::parallel_for(jobs, parts.size(), [&] {
    return [&](std::uint64_t i) {
      const auto first = static_cast<std::uint32_t>(i) * kPart;
      for (std::uint32_t unit = first; unit < std::min(n, first + kPart); ++unit)
        for (const auto& [other, score] : hits.of(unit)) {
          if (other == unit) continue;
          // If each is a hit of the other, the lower unit adds the edge.
          const Hit* back = find(hits, other, unit);
          if (back != nullptr && other < unit) continue;
          const double back_score = back != nullptr ? back->score : bm25.score(other, unit);
          parts[i].push_back({std::min(unit, other), std::max(unit, other),
              static_cast<float>((score + back_score) / 2)});
        }
    };
  });
  for (const auto& part : parts) edges_.insert(edges_.end(), part.begin(), part.end());
  std::ranges::sort(edges_, [](const Edge& x, const Edge& y) {
    return std::tuple(-x.weight, x.a, x.b) < std::tuple(-y.weight, y.a, y.b);
  });
  for (const auto& edge : edges_) ++begin_[edge.a + 1], ++begin_[edge.b + 1];
  for (std::uint32_t unit = 0; unit < n; ++unit) begin_[unit + 1] += begin_[unit];
  neighbours_.resize(2 * edges_.size());
  auto at = begin_;
  for (const auto& [a, b, weight] : edges_) {
    neighbours_[at[a]++] = {b, weight};
    neighbours_[at[b]++] = {a, weight};
  }
}

float HitGraph::weight(std::uint32_t a, std::uint32_t b) const {
  const auto of_a = neighbours(a), of_b = neighbours(b);
  const bool shorter = of_a.size() <= of_b.size();
  const auto& in = shorter ? of_a : of_b;
  const auto found = std::ranges::find(in, shorter ? b : a, &Hit::unit);
  return found == in.end() ? 0.0f : found->score;
}

}  // namespace passages
