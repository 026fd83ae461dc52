#pragma once
// The next words of rows whose log-probabilities lie on a device: drawn there, so that numbers of a
// word come to the host and no row does.

#include <cstdint>
#include <vector>

#include "infer/generate/generator_options.h"
#include "nn/base/torch.h"

namespace infer {

/// What one row is drawn by: its text's temperature, and a number of its text's Rng in [0, 1),
/// which temperature 0 does not look at.
struct RowDraw {
  double temperature = 1;
  double number = 0;
};

/// A word and its log-probability, nats.
struct DrawnWord {
  std::int64_t token = 0;
  double log_prob = 0;
};

/// What Draw takes from each row of log_p (B, V), nats, float32, by `options` with the row's own
/// temperature, but where rounding decides. Waits once, for three numbers a row. Throws
/// Error{bad_data} as Draw does.
std::vector<DrawnWord> draw_there(const DrawOptions& options, const torch::Tensor& log_p,
                                  const std::vector<RowDraw>& rows);

}  // namespace infer
