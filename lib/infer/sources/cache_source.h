#pragma once
// The continuous cache: a softmax of theta f.f over the last positions (Grave et al. 2017).

#include "infer/sources/memory_weight.h"

namespace infer {

struct CacheOptions {
  std::int64_t positions = 0;  ///< 0: no cache
  double theta = 0;            ///< 0: 1 / sqrt(d_model)
  MemoryWeight lambda;         ///< unset: 0.1

  bool any() const { return positions > 0; }
};

/// Resolved CacheOptions.
struct CachePlan {
  std::int64_t positions = 0;
  double theta = 1, lambda = 0.1;
  double unit = 1;  ///< unit of theta: 1 / sqrt(d_model)

  bool any() const { return positions > 0; }
};

}  // namespace infer
