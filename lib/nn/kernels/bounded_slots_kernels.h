#pragma once
// The recurrent loop of a contextual memory of bounded size, for one head of one row.

#include <cstdint>

namespace nn {

struct SlotShape {
  std::int64_t slots, width;
  std::int64_t stride;  ///< distance between steps of queries, pairs and y
  bool lru;             ///< true: evict the least recently attended pair; false: the oldest
};

/// Bookkeeping of the slots. Pairs are numbered from 1; 0 marks an empty slot. Both arrays have
/// shape (slots).
struct SlotMarks {
  std::int64_t* born;      ///< number of the pair in the slot
  std::int64_t* attended;  ///< number of the newest pair when this pair was last attended
};

/// Runs `steps` steps. At each step with pairs[t] the new pair enters an empty slot or replaces the
/// evicted pair. Then y_t = sum over slots of softmax_s(q_t . k_s) v_s, or 0 if all slots are
/// empty. A read attends to the slots whose weight exceeds 1 / (number of slots in use). Among
/// pairs attended at the same time the oldest is evicted. Shapes: queries, pair_keys, pair_values,
/// y (steps, width); keys, values (width, slots), with the used slots first.
template <class Real>
void read_slots(const SlotShape& shape, std::int64_t steps, const bool* pairs, const Real* queries,
    const Real* pair_keys, const Real* pair_values, Real* keys, Real* values,
    const SlotMarks& marks, Real* y);

}  // namespace nn
