#pragma once
// Samples the next tokens on the device, so that only a few numbers for each token are copied to
// the host.

#include <cstdint>
#include <vector>

#include "infer/generate/generator_options.h"
#include "nn/base/torch.h"

namespace infer {

/// Sampling parameters of a row: the temperature, and a random number in [0, 1) from the text's
/// Rng, unused at temperature 0.
struct RowDraw {
  double temperature = 1;
  double number = 0;
};

/// A token and its log-probability in nats.
struct DrawnWord {
  std::int64_t token = 0;
  double log_prob = 0;
};

/// Samples a token from each row of log_p (B, V), nats, float32, with `options` and the row's
/// temperature. Results equal those of Draw, except for rounding. Synchronises once, for three
/// numbers a row. Throws Error{bad_data} as Draw does.
std::vector<DrawnWord> draw_there(const DrawOptions& options, const torch::Tensor& log_p,
                                  const std::vector<RowDraw>& rows);

}  // namespace infer
