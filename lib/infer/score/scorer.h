#pragma once
// Scores a data set with a model and its memories, window by window (eval-ppl, and validation in
// train).

#include "infer/memory/stream_memory.h"
#include "infer/score/report.h"
#include "infer/windows/retriever.h"

namespace infer {

/// Consecutive targets that are scored together.
struct Scored {
  std::uint64_t first;    ///< element of the first target in the data
  torch::Tensor targets;  ///< (R) int64, CPU
  Parts parts;
  torch::Tensor log_prob = {};  ///< (R) float64, CPU: log p by the mixture
  bool fresh = false;           ///< a stream begins: learned weights begin anew
};

/// The retrieved passages of a window.
struct Retrieved {
  std::uint64_t first;  ///< element of the first scored target in the data
  std::int64_t tokens;  ///< number of scored tokens
  const Prefixes& prefixes;
};

/// Callbacks of score(). A group consists of windows that share a forward pass, or of pairs that
/// are sorted together. Groups are independent, except for the memories of earlier tokens.
struct Callbacks {
  std::function<void(const Scored&)> scored = {};           ///< for each block
  std::function<void(std::uint64_t tokens)> progress = {};  ///< tokens so far; may throw to stop
  std::function<void(const Retrieved&)> retrieved = {};     ///< for each window, in order
  /// Called for each window in the order of summation, with its nats and the nats at the best
  /// constant weights, if gates are compared with these, else 0.
  std::function<void(double nats, double constant_nats)> added = {};
  /// Selects the groups to score. Preceding groups, as far back as memories reach, are only stored.
  core::Part part = {};
  /// Called with the part's groups [begin, end) and their total number.
  std::function<void(std::int64_t begin, std::int64_t end, std::int64_t of)> cut = {};
};

/// Scores a data set. Without a protocol, every token but a stream's first is scored once (the
/// first too, with windows.beginning). Restores the model's mode and does not use torch's
/// generators. Memory use does not depend on the size of the data. The search for one batch of
/// windows overlaps the model's computation of the next. The data are tokens, or pairs with a plan
/// for pairs. For a part, the totals are its own nats and tokens, and the bytes and words of all
/// data. Throws Error{bad_data} for other kinds of data, fewer than two tokens or a token outside
/// the vocabulary; Error{usage} for datastores whose combination gives no probabilities.
Totals score(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, torch::Device device, const Callbacks& watch = {});

/// Scores a data set on a grid of tuned parameters; log_prob is undefined.
Totals walk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, const Grid& grid, torch::Device device, const Callbacks& watch);

}  // namespace infer
