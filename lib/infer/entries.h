#pragma once
// The memory entries of a data set: what a datastore is made of.

#include <cstdint>
#include <optional>
#include <vector>

#include "infer/options.h"
#include "infer/windows.h"
#include "nn/model.h"
#include "nn/state.h"
#include "nn/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Entries in the order of the stream: the key of a position and the token that follows it.
struct EntryBlock {
  torch::Tensor keys;    ///< (R, d_key) float32, CPU, contiguous: Hidden::g
  torch::Tensor labels;  ///< (R) int32, CPU
};

/// Walks a data set's windows as Scorer does; a position gets its key in the window that would
/// score its target. One entry for each token that has something before it. The model is in
/// evaluation mode while this lives. Not thread safe.
class EntryWalk {
 public:
  /// `windows` resolved; all must outlive this. Throws Error{bad_data} for data of another kind
  /// than tokens.
  EntryWalk(nn::Model& model, const shard::Dataset& data, const WindowOptions& windows,
            torch::Device device);
  ~EntryWalk();
  EntryWalk(const EntryWalk&) = delete;
  EntryWalk& operator=(const EntryWalk&) = delete;

  /// The next entries, those of one forward; none at the end. Throws Error{bad_data} for a token
  /// outside the model's vocabulary.
  std::optional<EntryBlock> next();

  /// Goes to where a walk stood that had given `entries` in whole blocks; `state` is its state().
  /// Throws Error{bad_data} if no block ends there.
  void go_on(std::uint64_t entries, nn::State state);
  /// What a walk of carried windows needs to go on; else nothing is in it.
  const nn::State& state() const { return state_; }
  /// Windows depend on a State: see go_on().
  bool carried() const { return windows_.carry == "on"; }

 private:
  std::vector<Span> next_spans();
  nn::Model& model_;
  const shard::Dataset& data_;
  const WindowOptions& windows_;
  torch::Device device_;
  Windows all_;
  std::optional<Span> waiting_;
  nn::State state_;
  bool training_;
};

/// Entries that a walk gives in all.
std::uint64_t count_entries(const shard::Dataset& data, const WindowOptions& windows);
/// The first entry of each document, counted over the data set.
std::vector<std::int64_t> first_entries(const shard::Dataset& data, const WindowOptions& windows);

}  // namespace infer
