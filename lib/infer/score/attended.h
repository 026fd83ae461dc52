#pragma once
// Average attention weights of the last token of a text.

#include "model/model_config.h"
#include "nn/arch/model.h"
#include "shard/dataset.h"

namespace infer {

struct AttendedOptions {
  std::int64_t window = 0;           ///< tokens of a sequence; 0: the training segment
  std::int64_t sequences = 256;      ///< number of sequences, each with a random start
  std::int64_t batch_tokens = 4096;  ///< tokens of the sequences in one forward pass
  std::uint64_t seed = 1;            ///< of the random starts; set by --seed
  void fields(core::FieldList& f);

  /// Replaces a window of 0 by the model's training segment. Throws Error{usage} if the model has
  /// none.
  void settle(const model::TrainingFacts& facts);
};

/// Returns the attention weights of the last token, averaged over sequences: (layers, heads,
/// window) float64 on the CPU; rows sum to 1. Position s of a mosaic is the pair of tokens s and s
/// + 1, and its last position has weight 0. Sequences are read in pieces that share a State, and
/// only the last token reports weights, so that no (window, window) matrix is needed. Leaves the
/// model in evaluation mode. Throws Error{usage} for an architecture without attention weights, for
/// a window beyond its positions and for invalid numbers; Error{bad_data} for data shorter than a
/// window.
torch::Tensor mean_attention(nn::Model& model, const shard::Dataset& data,
    const AttendedOptions& options, torch::Device device);

}  // namespace infer
