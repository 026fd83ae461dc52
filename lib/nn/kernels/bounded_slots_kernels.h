#pragma once
// A contextual memory of bounded size: one head of one row, a step after the other.

#include <cstdint>

namespace nn {

struct SlotShape {
  std::int64_t slots, width;
  std::int64_t stride;  ///< between steps of queries, pairs and y
  bool lru;             ///< who goes: the least recently attended; else the oldest
};

/// Numbers of pairs, from 1 on; 0: the slot is empty. Both (slots).
struct SlotMarks {
  std::int64_t* born;      ///< the pair's own number
  std::int64_t* attended;  ///< the newest pair when this one was last attended
};

/// At each step with pairs[t] a pair goes into an empty slot, or into that of the pair that goes;
/// then y_t = sum over slots of softmax_s(q_t . k_s) v_s, 0 where there is none. A read attends to
/// the slots that get more than an even share of it. Of pairs that were attended at the same time
/// the oldest goes. queries, pair_keys, pair_values, y (steps, width); keys, values (width, slots),
/// which hold the slots in use at the front.
template <class Real>
void read_slots(const SlotShape& shape, std::int64_t steps, const bool* pairs, const Real* queries,
                const Real* pair_keys, const Real* pair_values, Real* keys, Real* values,
                const SlotMarks& marks, Real* y);

}  // namespace nn
