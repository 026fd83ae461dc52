#pragma once
// Order of batches: assigns tokens to micro-batches. An order is a function of (seed, index of the
// micro-batch), so that a run can resume anywhere without stored state.
// Cuts the columns of a text into segments of L tokens or of varying lengths.
// Permutation of the items of an epoch.
// Random streams of a run's seed, so that different uses draw independent numbers. A use with an
// index (an epoch, a micro-batch) adds the index to its stream.
// Order of batches for a shard of pairs.
// Reads order shards for training.

#include "batch/rows.h"
#include "core/rng.h"
#include "nn/memory/joint_loss.h"
#include "train/train_options.h"

namespace train {

inline constexpr std::uint64_t kEpochStream = std::uint64_t{1} << 32;    ///< + epoch
inline constexpr std::uint64_t kDropoutStream = std::uint64_t{2} << 60;  ///< + micro-batch
inline constexpr std::uint64_t kCoinStream = std::uint64_t{3} << 60;     ///< + micro-batch
/// Lengths of columns, or ties in the order of pairs: no run uses both.
inline constexpr std::uint64_t kOrderStream = std::uint64_t{4} << 60;

/// First maps of a run on vectors, which uses none of the streams above.
inline constexpr std::uint64_t kFirstMapsStream = 0;
inline constexpr std::uint64_t kWindowsStream = 1;  ///< + micro-batch

/// Returns 0 .. n-1 in the shuffled order of an epoch; caches one epoch. Not thread safe.
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t seed)
      : items_(static_cast<std::size_t>(n)), seed_(seed) {}
  const std::vector<std::int64_t>& of(std::int64_t epoch) {
    if (epoch != epoch_) {
      std::iota(items_.begin(), items_.end(), 0);
      core::Rng(seed_, kEpochStream + static_cast<std::uint64_t>(epoch)).shuffle(items_);
      epoch_ = epoch;
    }
    return items_;
  }

 private:
  std::vector<std::int64_t> items_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
};

using batch::Row;

/// All orders score each target exactly once in an epoch; the stream's first token is no target. A
/// new epoch begins with a new micro-batch, so the last micro-batch of an epoch may have fewer
/// rows. L is the segment, B the batch.
/// - shuffled: segments of L in a new order each epoch; a segment is a run.
/// - sequential: segments in the order of the text; all form one run.
/// - runs: runs of M consecutive segments, in a new order each epoch, B / M of them in a
///   micro-batch.
/// - documents: segments within documents, whose first token is no target; documents in a new order
///   each epoch, their segments in the order of the text; a document is a run.
/// - streams: the stream divided into B equal contiguous columns, L tokens of each in a micro-batch
///   (or varying lengths: batches.h), in the order of the text. State is carried; rows are
///   fresh only at the start of an epoch; a column is a run.
/// - order: segments as listed in an order shard, B at a time; these micro-batches come in a new
///   order each epoch, so that neighbours stay together (TRIME's ext); a segment is a run.
/// - pairs, and order with pairs: groups of pairs with at most batch_tokens target tokens, with
///   padding (a longer pair forms its own group): pairs of similar length, or neighbours in the
///   order. Groups are equal in every epoch and come in a new order each epoch; a pair is a run and
///   a segment.
///
/// Segments are numbered in the order of the text; the numbers are equal in every epoch and refer
/// to the same tokens unless lengths vary.
class Order {
 public:
  virtual ~Order() = default;
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual std::int64_t targets_per_epoch() const = 0;
  /// Returns the rows of micro-batch `index` (0, 1, ... over all epochs). Not thread safe: caches
  /// the epoch's permutation.
  virtual std::vector<Row> rows(std::int64_t index) = 0;
  /// Returns whether rows of consecutive micro-batches continue one another.
  virtual bool carries() const { return false; }
};

/// Creates an order. `data` must be tokens or pairs and outlive the order; only "order" needs
/// `order`. Throws Error{bad_data} if the data have no target or differ from the order shard's data
/// (naming both), Error{usage}.
std::unique_ptr<Order> make_order(const BatchOptions& options, const shard::Dataset& data,
    const shard::Dataset* order, std::uint64_t seed);

/// A micro-batch, ready for training.
struct MicroBatch {
  std::int64_t index = 0;
  nn::Batch batch;             ///< (rows, longest row); shorter rows are padded
  std::int64_t tokens = 0;     ///< number of scored tokens
  nn::Teachers teachers = {};  ///< teacher's distributions for its targets, if given
};

/// A process's share of each step's micro-batches: `count` of every `of`, from `begin` on. They are
/// consecutive, or runs of `run` of them that begin `stride` apart.
struct MicroBatchShare {
  std::int64_t begin = 0, count = 1, of = 1, run = 0, stride = 0;

  /// Returns the number of the process's i-th micro-batch, over all steps.
  std::int64_t at(std::int64_t i) const {
    const std::int64_t own = i % count;
    return i / count * of + begin + (run > 0 ? own / run * stride + own % run : own);
  }
};

/// Reads the rows' tokens. Throws the errors of Dataset::read.
MicroBatch read_batch(const shard::Dataset& data, const std::vector<Row>& rows, std::int64_t index);

/// Rules that change inputs and target weights.
struct TokenRules {
  std::vector<std::int64_t> ignored_targets;  ///< targets with weight 0
  /// BOS token that replaces the first input of each fresh row; -1: none.
  std::int64_t begin = -1;
  /// Documents whose marks select the learned targets; others get weight 0. Null: all are learned.
  const shard::Documents* marks = nullptr;
};
void apply(const TokenRules& rules, MicroBatch& micro);

/// Cuts of a column of `total` > 0 tokens. With deviation 0, segments have `length` tokens.
/// Otherwise lengths follow a normal distribution with this standard deviation around `length`, or,
/// for one in twenty, around half of it, limited to at least 5 (or `length`, if less) and at most
/// `length` + 3 deviations; the last segment is the rest (Merity et al. 2018; an option of
/// Transformer-XL). Lengths are drawn once and permuted in each epoch, so that all epochs have
/// equal numbers of segments. Not thread safe: caches the epoch's cuts.
class ColumnCuts {
 public:
  ColumnCuts(std::int64_t total, std::int64_t length, double deviation, std::uint64_t seed);
  std::int64_t count() const { return count_; }
  /// Returns the first token of the epoch's segment `step` in [0, count]; at `count`, `total` or
  /// more.
  std::int64_t begin(std::int64_t epoch, std::int64_t step);

 private:
  std::int64_t length_, count_;
  std::vector<std::int64_t> lengths_, begins_;  // empty if all are `length`
  Permutation permutation_{0, 0};
  std::int64_t epoch_ = -1;
};

/// Throws Error{usage} if a side exceeds a model's learned positions.
void check_pair_lengths(const shard::Dataset& data, std::int64_t context);

}  // namespace train
