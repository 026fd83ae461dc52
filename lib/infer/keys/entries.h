#pragma once
// The memory entries of a data set: what a datastore is made of.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/launcher.h"
#include "infer/windows/window_batches.h"
#include "infer/windows/window_plan.h"
#include "nn/arch/model.h"
#include "nn/base/download.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Entries in the order of the stream: the key of a position and the token that follows it.
struct EntryBlock {
  torch::Tensor labels;  ///< (R) int32, CPU
  torch::Tensor keys;    ///< (R, d_key) float32, CPU, contiguous: Hidden::g
  /// (R) float32, CPU: log-probability that the model alone gives the label, and what normalises
  /// its softmax; undefined unless the walk was asked for them.
  torch::Tensor log_probs = {}, log_z = {};

  /// Keys and what the head gives, (2, R) or undefined, that are on their way from where the model
  /// is.
  EntryBlock(torch::Tensor labels, const torch::Tensor& keys, const torch::Tensor& head);
  /// Waits for them; before that they are undefined here.
  void arrive();

 private:
  nn::Download coming_;
};

/// Some consecutive entries of a walk, [begin, end).
struct EntryRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  /// Where documents begin in it, counted from its first entry: those before it at 0, those behind
  /// it at its end. `first`: in all entries.
  std::vector<std::int64_t> documents(std::vector<std::int64_t> first) const;
};

/// Gives the entries of a data set from the first to the last, a block at a time. The model is in
/// evaluation mode while this lives. Not thread safe.
class EntryWalk {
 public:
  virtual ~EntryWalk();
  EntryWalk(const EntryWalk&) = delete;
  EntryWalk& operator=(const EntryWalk&) = delete;

  /// The next entries, of which the labels have arrived; none at the end. Throws Error{bad_data}
  /// for a token outside the model's vocabulary.
  virtual std::optional<EntryBlock> next() = 0;
  /// Goes to where a walk stood that had given `entries` in whole blocks; `state` is its state().
  /// Throws Error{bad_data} if no block ends there.
  virtual void go_on(std::uint64_t entries, nn::State state) = 0;
  /// What a walk that carries a State needs to go on; else nothing is in it.
  const nn::State& state() const { return state_; }
  virtual bool carried() const { return false; }
  /// The blocks to come have log_probs and log_z.
  void ask_log_probs() { asks_log_probs_ = true; }

  /// Entries in all, and the first of each document, counted over the data set.
  virtual std::uint64_t count() const = 0;
  virtual std::vector<std::int64_t> first_of_documents() const = 0;
  /// The entries of a part: it begins and ends where a block does, of a walk that carries a State
  /// where a stream does. A key does not depend on which part it is in.
  EntryRange range_of(const core::Part& part) const;

 protected:
  explicit EntryWalk(nn::Model& model);
  /// Entries of each of the groups that stand or fall together.
  virtual std::vector<std::uint64_t> group_sizes() const = 0;
  /// f (R, d_model), labels (R) int64 on the CPU -> (2, R) where f is, log_probs and log_z;
  /// undefined unless asked.
  torch::Tensor head_of(const torch::Tensor& f, const torch::Tensor& labels) const;
  nn::Model& model_;
  nn::State state_;
  bool asks_log_probs_ = false;

 private:
  bool training_;
};

/// Walks the windows of a stream of tokens as Scorer does; a position gets its key in the window
/// that would score its target. One entry for each token that has something before it. A block is
/// one forward.
class WindowWalk : public EntryWalk {
 public:
  /// Model and data must outlive this. Throws Error{bad_data} for data of another kind than tokens.
  WindowWalk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
             torch::Device device);
  std::optional<EntryBlock> next() override;
  void go_on(std::uint64_t entries, nn::State state) override;
  /// Windows depend on a State.
  bool carried() const override { return windows_.carried; }
  std::uint64_t count() const override;
  std::vector<std::int64_t> first_of_documents() const override;

 private:
  std::vector<std::uint64_t> group_sizes() const override;
  const shard::Dataset& data_;
  WindowPlan windows_;
  torch::Device device_;
  WindowBatches batches_;
};

}  // namespace infer
