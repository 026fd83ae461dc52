#pragma once
// What the last token of a text attends to, on average.

#include <cstdint>

#include "core/options.h"
#include "model/model_config.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

struct AttendedOptions {
  std::int64_t window = 0;           ///< tokens of a sequence; 0: the trained segment
  std::int64_t sequences = 256;      ///< each with a random start
  std::int64_t batch_tokens = 4096;  ///< sequences go through the model together
  std::uint64_t seed = 1;            ///< of the starts; no flag of its own: --seed
  void fields(core::FieldList& f);

  /// A window of 0 becomes the segment that the model was trained with: throws Error{usage} if it
  /// does not say.
  void settle(const model::TrainingFacts& facts);
};

/// Mean over sequences of the weights of each sequence's last token: (layers, heads, window)
/// float64 on the CPU; rows sum to 1. A mosaic's position s is the pair of tokens s and s + 1, and
/// its last position has 0. Sequences go through the model in pieces that share a State, and only
/// the last token is watched: no (window, window) matrix. Leaves the model in evaluation mode.
/// Throws Error{usage} for an architecture without attention to watch, for a window beyond its
/// positions or for numbers that make no sense, Error{bad_data} for data shorter than a window.
torch::Tensor mean_attention(nn::Model& model, const shard::Dataset& data,
                             const AttendedOptions& options, torch::Device device);

}  // namespace infer
