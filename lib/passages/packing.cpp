// path_cover() takes greedy edges and then searches locally. Paths are adjacent in a ring of all
// units. An edge of weight 0 joins two paths, so a heavier ring is a heavier cover.

#include "passages/pack_data.h"

#include "core/parallel.h"
#include "core/rng.h"

namespace passages {
namespace {

bool among_hits(const Hits& hits, std::uint32_t query, std::uint32_t unit) {
  return std::ranges::any_of(hits.of(query), [&](const Hit& hit) { return hit.unit == unit; });
}

constexpr std::uint32_t kPart = 4096;  // units per task

const Hit* find(const Hits& hits, std::uint32_t query, std::uint32_t unit) {
  return core::find_by(hits.of(query), unit, &Hit::unit);
}

constexpr std::size_t kTried = 12;          // nearest neighbours that a unit is moved next to
constexpr std::uint32_t kLongest = 3;       // most units that Or-opt moves at once
constexpr std::uint32_t kFarthest = 25000;  // most units that a move reverses; bounds its cost
constexpr float kLeastGain = 1e-3f;  // smaller gains could be rounding errors and cause endless
                                     // moves

constexpr std::uint32_t kNone = 0xFFFFFFFF;

// Builds paths from the heaviest edge on, as up to two neighbours of each unit.
class GreedyEdges {
 public:
  explicit GreedyEdges(const HitGraph& graph)
      : beside_(graph.units(), {kNone, kNone}), root_(graph.units()) {
    std::iota(root_.begin(), root_.end(), 0u);
    for (const auto& [a, b, weight] : graph.edges()) {
      if (beside_[a][1] != kNone || beside_[b][1] != kNone) continue;
      const auto of_a = find(a), of_b = find(b);
      if (of_a == of_b) continue;
      root_[of_a] = of_b;
      join(a, b);
      join(b, a);
    }
  }

  // Emits the paths in order of the lower number of their ends.
  UnitOrder in_a_row() const {
    UnitOrder order;
    std::vector<bool> used(beside_.size());
    for (std::uint32_t start = 0; start < beside_.size(); ++start) {
      if (used[start] || beside_[start][1] != kNone) continue;
      for (std::uint32_t unit = start, before = kNone; unit != kNone;) {
        used[unit] = true;
        order.push_back(unit);
        const auto next = beside_[unit][0] != before ? beside_[unit][0] : beside_[unit][1];
        before = unit;
        unit = next;
      }
    }
    return order;
  }

 private:
  void join(std::uint32_t a, std::uint32_t b) { beside_[a][beside_[a][0] != kNone] = b; }
  std::uint32_t find(std::uint32_t unit) {
    while (root_[unit] != unit) unit = root_[unit] = root_[root_[unit]];
    return unit;
  }
  std::vector<std::array<std::uint32_t, 2>> beside_;
  std::vector<std::uint32_t> root_;
};

class Ring {
 public:
  Ring(const HitGraph& graph, UnitOrder order)
      : graph_(graph), n_(static_cast<std::uint32_t>(order.size())), order_(std::move(order)),
        place_(n_), queued_(n_) {
    for (std::uint32_t i = 0; i < n_; ++i) place_[order_[i]] = i;
  }

  // Units that a move reverses get other moves without being queued again, so another pass is
  // needed.
  void improve() {
    if (n_ < 8) return;
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto unit : order_) again(unit);
      while (!queue_.empty()) {
        const auto unit = queue_.front();
        queue_.pop_front();
        queued_[unit] = false;
        while (move(unit)) moved = true;
      }
    }
  }

  // Cuts the ring at the lightest edge.
  UnitOrder take() {
    std::uint32_t cut = 0;
    float least = n_ > 0 ? graph_.weight(order_[n_ - 1], order_[0]) : 0;
    for (std::uint32_t i = 1; i < n_; ++i)
      if (const float weight = graph_.weight(order_[i - 1], order_[i]); weight < least)
        least = weight, cut = i;
    std::rotate(order_.begin(), order_.begin() + cut, order_.end());
    return std::move(order_);
  }

 private:
  std::uint32_t at(std::uint32_t place) const { return order_[place % n_]; }
  std::uint32_t next(std::uint32_t unit) const { return at(place_[unit] + 1); }
  std::uint32_t previous(std::uint32_t unit) const { return at(place_[unit] + n_ - 1); }
  // Returns the number of steps from one unit to another in the ring's direction.
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return (place_[to] + n_ - place_[from]) % n_;
  }
  float weight(std::uint32_t a, std::uint32_t b) const { return graph_.weight(a, b); }

  bool move(std::uint32_t unit) { return two_opt(unit) || or_opt(unit); }

  void again(std::uint32_t unit) {
    if (queued_[unit]) return;
    queued_[unit] = true;
    queue_.push_back(unit);
  }

  // Reverses the range from `first` to `last` or, which gives equal neighbours, the rest of the
  // ring.
  void reverse(std::uint32_t first, std::uint32_t last) {
    if (2 * (distance(first, last) + 1) <= n_) reverse_within(first, last);
    else reverse_within(next(last), previous(first));
  }

  // Replaces a-b ... c-d by a-c ... b-d, with b after a and d after c (or both before).
  bool two_opt(std::uint32_t a) {
    for (const bool forward : {true, false}) {
      const auto step = [&](std::uint32_t unit) { return forward ? next(unit) : previous(unit); };
      const std::uint32_t b = step(a);
      const float a_b = weight(a, b);
      const auto near = graph_.neighbours(a);
      for (std::size_t i = 0; i < std::min(kTried, near.size()); ++i) {
        const auto [c, a_c] = near[i];
        if (a_c <= a_b) break;
        const std::uint32_t d = step(c);
        if (c == b || d == a) continue;
        if (a_c + weight(b, d) - a_b - weight(c, d) < kLeastGain) continue;
        const auto first = forward ? b : c, last = forward ? c : b;
        const std::uint32_t length = distance(first, last) + 1;
        if (std::min(length, n_ - length) > kFarthest) continue;
        reverse(first, last);
        for (const auto unit : {a, b, c, d}) again(unit);
        return true;
      }
    }
    return false;
  }

  // Moves a run of units that begins or ends with `a`, so that `a` is beside one of its neighbours.
  bool or_opt(std::uint32_t a) {
    for (std::uint32_t length = 1; length <= kLongest; ++length)
      for (const bool forward : {true, false}) {
        // The run goes from a to e, away from p: p-[a...e]-n.
        const std::uint32_t from = place_[a];
        const std::uint32_t e = at(forward ? from + length - 1 : from + n_ - (length - 1));
        const std::uint32_t p = forward ? previous(a) : next(a);
        const std::uint32_t n = forward ? next(e) : previous(e);
        const float out = weight(p, a) + weight(e, n) - weight(p, n);
        const auto near = graph_.neighbours(a);
        for (std::size_t i = 0; i < std::min(kTried, near.size()); ++i) {
          const auto [c, a_c] = near[i];
          if (a_c <= weight(p, a)) break;
          const auto in_run = [&](std::uint32_t unit) {
            return (forward ? distance(a, unit) : distance(unit, a)) < length;
          };
          if (in_run(c)) continue;
          for (const bool after : {true, false}) {
            const std::uint32_t d = after == forward ? next(c) : previous(c);
            if (in_run(d)) continue;  // else into the gap c-d
            if (a_c + weight(e, d) - weight(c, d) - out < kLeastGain) continue;
            const auto first = forward ? a : e, last = forward ? e : a;
            if (std::min(distance(last, c), distance(c, first)) > kFarthest) continue;
            insert(first, last, c, d, after == forward, a);
            for (const auto unit : {a, e, p, n, c, d}) again(unit);
            return true;
          }
        }
      }
    return false;
  }

  // Inserts the run first ... last (in the ring's direction) between c and d, with its end `a` next
  // to c. d comes after c if `after`. It reverses the run and the units between.
  void insert(std::uint32_t first, std::uint32_t last, std::uint32_t c, std::uint32_t d, bool after,
      std::uint32_t a) {
    const std::uint32_t low = after ? c : d, high = after ? d : c;  // the gap is low-high
    const std::uint32_t behind = next(last), before = previous(first);
    // The order is first..last behind..low high: swap the two runs.
    if (distance(last, low) <= distance(high, first)) {
      reverse_within(first, low);
      reverse_within(low, behind);
      reverse_within(last, first);
    } else {  // low high..before first..last
      reverse_within(high, last);
      reverse_within(last, first);
      reverse_within(before, high);
    }
    // Now the order is low first..last high.
    const bool a_first = a == first, c_low = after;
    if (a_first != c_low) reverse_within(first, last);
  }

  // Reverses exactly this range, never the rest.
  void reverse_within(std::uint32_t first, std::uint32_t last) {
    std::uint32_t i = place_[first], j = place_[last];
    for (std::uint32_t left = (distance(first, last) + 1) / 2; left > 0; --left) {
      std::swap(order_[i], order_[j]);
      place_[order_[i]] = i;
      place_[order_[j]] = j;
      i = i + 1 == n_ ? 0 : i + 1;
      j = j == 0 ? n_ - 1 : j - 1;
    }
  }

  const HitGraph& graph_;
  std::uint32_t n_;
  UnitOrder order_;
  std::vector<std::uint32_t> place_;
  std::vector<bool> queued_;
  std::deque<std::uint32_t> queue_;
};

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

UnitOrder path_cover(const Bm25& bm25, const Hits& hits, int jobs) {
  const HitGraph graph(bm25, hits, jobs);
  Ring ring(graph, GreedyEdges(graph).in_a_row());
  ring.improve();
  return ring.take();
}

}  // namespace passages
