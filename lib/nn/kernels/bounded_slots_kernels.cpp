#include "nn/kernels/bounded_slots_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

/// Returns the slot to evict.
std::int64_t victim(const SlotMarks& marks, std::int64_t slots, bool lru) {
  std::int64_t at = 0;
  const auto rank = [&](std::int64_t s) {
    return std::pair(lru ? marks.attended[s] : 0, marks.born[s]);
  };
  for (std::int64_t s = 1; s < slots; ++s)
    if (rank(s) < rank(at)) at = s;
  return at;
}

/// Writes p (n) = softmax of q . k_s. keys is (width, slots).
template <class Real>
void weigh(const SlotShape& shape, const Real* q, const Real* keys, std::int64_t n, Real* p) {
  std::fill(p, p + n, Real(0));
  for (std::int64_t c = 0; c < shape.width; ++c)
    vec::add_scaled(q[c], keys + c * shape.slots, n, p);
  vec::softmax(p, n);
}

}  // namespace

template <class Real>
void read_slots(const SlotShape& shape, std::int64_t steps, const bool* pairs, const Real* queries,
    const Real* pair_keys, const Real* pair_values, Real* keys, Real* values,
    const SlotMarks& marks, Real* y) {
  std::vector<Real> p(static_cast<std::size_t>(shape.slots));
  std::int64_t used = 0, newest = 0;
  while (used < shape.slots && marks.born[used] > 0) newest = std::max(newest, marks.born[used++]);
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t at = t * shape.stride;
    if (pairs[t]) {
      const auto slot = used < shape.slots ? used++ : victim(marks, shape.slots, shape.lru);
      for (std::int64_t c = 0; c < shape.width; ++c) {
        keys[c * shape.slots + slot] = pair_keys[at + c];
        values[c * shape.slots + slot] = pair_values[at + c];
      }
      marks.born[slot] = marks.attended[slot] = ++newest;
    }
    std::fill(y + at, y + at + shape.width, Real(0));
    if (used == 0) continue;
    weigh(shape, queries + at, keys, used, p.data());
    for (std::int64_t c = 0; c < shape.width; ++c) {
      y[at + c] = vec::dot(p.data(), values + c * shape.slots, used);
    }
    const Real even = 1 / static_cast<Real>(used);
    for (std::int64_t s = 0; s < used; ++s)
      if (p[static_cast<std::size_t>(s)] > even) marks.attended[s] = newest;
  }
}

template void read_slots<float>(const SlotShape&, std::int64_t, const bool*, const float*,
    const float*, const float*, float*, float*, const SlotMarks&, float*);
template void read_slots<double>(const SlotShape&, std::int64_t, const bool*, const double*,
    const double*, const double*, double*, double*, const SlotMarks&, double*);

}  // namespace nn
