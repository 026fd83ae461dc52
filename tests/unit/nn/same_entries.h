#pragma once
// Compares the entries of memories.

#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"

inline bool same(const nn::Entries& a, const nn::Entries& b) {
  return torch::equal(a.keys, b.keys) && torch::equal(a.labels, b.labels) &&
         torch::equal(a.place.run, b.place.run) && torch::equal(a.place.segment, b.place.segment) &&
         torch::equal(a.place.position, b.place.position);
}
