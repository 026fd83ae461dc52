#pragma once
// Scores that the model's own head gives to the rows of a window.

#include "nn/base/head.h"
#include "nn/base/torch.h"

namespace infer {

/// Head output for R rows: log p of the target and the first level's log-sum-exp, each (R).
struct HeadRows {
  torch::Tensor log_prob, log_z;
  torch::Tensor confidence = {};  ///< (R, kConfidence), if gates need it

  HeadRows slice(std::int64_t begin, std::int64_t end) const {
    return {log_prob.slice(0, begin, end), log_z.slice(0, begin, end),
            confidence.defined() ? confidence.slice(0, begin, end) : confidence};
  }
};
/// Computes the rows in blocks of about `block_bytes`, without gradient. f (R, d), targets (R).
/// `confident` also computes the confidence, which needs whole rows.
HeadRows head_rows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets,
                   bool confident = false, std::int64_t block_bytes = 64 << 20);

}  // namespace infer
