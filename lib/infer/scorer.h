#pragma once
// Scores a data set with a model and its memories, window by window: eval-ppl's work, and the
// validation of train.

#include <cstdint>
#include <functional>

#include "infer/options.h"
#include "infer/test_memory.h"
#include "infer/totals.h"
#include "nn/model.h"
#include "nn/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Targets scored together, in the order of the stream.
struct Scored {
  std::uint64_t first;    ///< the first target's element offset in the data; the others follow
  torch::Tensor targets;  ///< (R) int64, CPU
  Parts parts;
  torch::Tensor log_prob;             ///< (R) float64, CPU: of the mixture
  const Neighbours* found = nullptr;  ///< what the stores gave for them (at the first nprobe)
};

struct Watch {
  std::function<void(const Scored&)> scored = {};           ///< each block
  std::function<void(std::uint64_t tokens)> progress = {};  ///< tokens so far; may throw to stop
};

/// Every token is scored once but a stream's first (that too with windows.beginning). The model is
/// left in the mode it was in; torch's generators are not touched; memory does not grow with the
/// data. Stores must be open (open_stores()); they are searched for a batch of windows while the
/// model computes the next one. Data of kind tokens, or pairs with pair_windows(). Throws
/// Error{bad_data} for another kind, for fewer than two tokens or a token outside the model's
/// vocabulary, Error{usage} as resolve() (called here) does.
Totals score(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
             MemoryOptions memory, torch::Device device, const Watch& watch = {});

/// The same walk with a grid of temperatures and thetas; log_prob is undefined.
Totals walk(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
            MemoryOptions memory, const MemoryGrid& grid, torch::Device device, const Watch& watch);

/// The token after which the data's documents start, if the tokenizer has one and the first
/// document ends with it: what stands before a stream's first token too. Else -1.
std::int64_t beginning_token(const shard::Dataset& data);

}  // namespace infer
