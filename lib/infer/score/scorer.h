#pragma once
// Scores a data set with a model and its memories, window by window: eval-ppl's work, and the
// validation of train.

#include <cstdint>
#include <functional>

#include "core/launcher.h"
#include "infer/memory/stream_memory.h"
#include "infer/score/totals.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/retriever.h"
#include "infer/windows/window_plan.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Targets scored together, in the order of the stream.
struct Scored {
  std::uint64_t first;    ///< the first target's element offset in the data; the others follow
  torch::Tensor targets;  ///< (R) int64, CPU
  Parts parts;
  torch::Tensor log_prob = {};  ///< (R) float64, CPU: of the mixture
};

/// The prefixes of a window.
struct Retrieved {
  std::uint64_t first;  ///< the first scored target's element offset in the data
  std::int64_t tokens;  ///< that are scored
  const Prefixes& prefixes;
};

/// Windows that share a forward pass, or pairs that are sorted together, are a group: what they
/// give depends on no other, but for the memory before them.
struct Watch {
  std::function<void(const Scored&)> scored = {};           ///< each block
  std::function<void(std::uint64_t tokens)> progress = {};  ///< tokens so far; may throw to stop
  std::function<void(const Retrieved&)> retrieved = {};     ///< each window's, in their order
  /// Each window's, in the order of the sums: its nats, and those at the best constant shares where
  /// gates are compared with these, else 0.
  std::function<void(double nats, double constant_nats)> added = {};
  /// The groups that are scored; of the others those just before them, as far back as memories
  /// reach, are remembered.
  core::Part part = {};
  /// Of a part: its groups [begin, end) of how many.
  std::function<void(std::int64_t begin, std::int64_t end, std::int64_t of)> cut = {};
};

/// Without a protocol every token is scored once but a stream's first (that too with
/// windows.beginning). The model is left in the mode it was in; torch's generators are not touched;
/// memory does not grow with the data. Stores are searched for a batch of windows while the model
/// computes the next one. Data of kind tokens, or pairs with a plan for pairs. Throws
/// Error{bad_data} for another kind, for fewer than two tokens or a token outside the model's
/// vocabulary, Error{usage} for stores that are combined into what is no probability. Of a part the
/// totals are its own nats and tokens, and the bytes and words of all data.
Totals score(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
             const MemoryPlan& memory, torch::Device device, const Watch& watch = {});

/// The same walk on a grid of numbers that are tuned; log_prob is undefined.
Totals walk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
            const MemoryPlan& memory, const Grid& grid, torch::Device device, const Watch& watch);

}  // namespace infer
