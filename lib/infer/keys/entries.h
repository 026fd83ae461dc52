#pragma once
// Computes the memory entries of a data set, from which a datastore is built.

#include "infer/windows/window_plan.h"
#include "nn/base/upload.h"

namespace infer {

/// Consecutive entries of the stream: the key of each position and the token that follows it.
struct EntryBlock {
  torch::Tensor labels;  ///< (R) int32, CPU
  torch::Tensor keys;    ///< (R, d_key) float32, CPU, contiguous: Hidden::g
  /// (R) float32, CPU: log p of the label by the model alone, and the log-normaliser of its
  /// softmax; undefined unless requested with ask_log_probs().
  torch::Tensor log_probs = {}, log_z = {};

  /// Starts the download of keys and of the head's output, (2, R) or undefined.
  EntryBlock(torch::Tensor labels, const torch::Tensor& keys, const torch::Tensor& head);
  /// Waits for the download; keys, log_probs and log_z are undefined before.
  void arrive();

 private:
  nn::Download coming_;
};

/// Consecutive entries [begin, end) of a walk.
struct EntryRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  /// Converts the first entries of documents, counted over all entries, to offsets from `begin`.
  /// Documents that begin before the range get 0, those after it get its size.
  std::vector<std::int64_t> documents(std::vector<std::int64_t> first) const;
};

/// Yields the entries of a data set in order, block by block. The model is in evaluation mode while
/// the walk exists. Not thread safe.
class EntryWalk {
 public:
  virtual ~EntryWalk() { model_.train(training_); }
  EntryWalk(EntryWalk&&) = delete;

  /// Returns the next entries, whose labels have arrived; nullopt at the end. Throws
  /// Error{bad_data} for a token outside the model's vocabulary.
  virtual std::optional<EntryBlock> next() = 0;
  /// Resumes after `entries`, a number of whole blocks; `state` is the former state(). Throws
  /// Error{bad_data} if no block ends there.
  virtual void resume(std::uint64_t entries, nn::State state) = 0;
  /// Returns the State needed to resume; empty unless the walk carries State.
  const nn::State& state() const { return state_; }
  virtual bool carried() const { return false; }
  /// Requests log_probs and log_z in the following blocks.
  void ask_log_probs() { asks_log_probs_ = true; }

  /// count(): number of entries. first_of_documents(): first entry of each document, counted over
  /// the data set.
  std::uint64_t count() const { return static_cast<std::uint64_t>(bounds().back()); }
  std::vector<std::int64_t> first_of_documents() const;
  /// Returns the entries of a part. Parts begin and end at block boundaries or, for a walk that
  /// carries State, at stream boundaries. Keys do not depend on the division into parts.
  EntryRange range_of(const core::Part& part) const;

 protected:
  explicit EntryWalk(nn::Model& model);
  /// Returns the first entry of each document, then the number of all entries.
  virtual std::vector<std::int64_t> bounds() const = 0;
  /// Returns the number of entries in each indivisible group.
  virtual std::vector<std::uint64_t> group_sizes() const = 0;
  /// Returns (2, R), log_probs and log_z, on the device of f, from f (R, d_model) and labels (R)
  /// int64 on the CPU.
  torch::Tensor head_of(const torch::Tensor& f, const torch::Tensor& labels) const;
  nn::Model& model_;
  nn::State state_;
  bool asks_log_probs_ = false;

 private:
  bool training_;
};

/// Creates the walk over the entries of a data set; model and data must outlive it. By windows, it
/// walks a token stream as Scorer does: a position gets its key from the window that would score
/// its target, every token with at least one predecessor has an entry, and a block is one forward
/// pass. By pairs (windows.pairs), it yields an entry for each token of each target, including its
/// end-of-document token, in the order of the shard: decoder states with the target tokens that
/// they predict (kNN-MT, Khandelwal et al. 2021; TRIME). Each pair is a document of the store, with
/// the pair's number. Throws Error{bad_data} for data of another kind, and the errors of
/// check_pairs().
std::unique_ptr<EntryWalk> make_walk(
    nn::Model& model, const shard::Dataset& data, const WindowPlan& windows, torch::Device device);

}  // namespace infer
