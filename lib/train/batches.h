#pragma once
// The order of batches: which tokens stand in which micro-batch. An order is a function of (seed,
// number of the micro-batch) alone, so that a run goes on anywhere without a state to keep.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/base/batch.h"
#include "nn/memory/target_loss.h"
#include "shard/dataset.h"
#include "train/train_options.h"

namespace train {

/// One row of a micro-batch: inputs [begin, begin + length) of the stream; each one's target is the
/// token after it.
struct Row {
  std::uint64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t run = 0, segment = 0;  ///< nn::Place
  bool fresh = true;
  bool operator==(const Row&) const = default;
};

/// All orders score each target exactly once an epoch; the stream's first token is no target. A new
/// epoch begins with a micro-batch of its own, so the last of an epoch may have fewer rows. L is
/// the segment, B the batch.
/// - shuffled: segments of L, each epoch in a new order; a segment is a run.
/// - kept: segments in the order of the text; all are one run.
/// - runs: runs of M consecutive segments, the runs in a new order each epoch, B / M of them a
///   micro-batch.
/// - documents: segments that never leave their document, whose first token is no target; documents
///   in a new order each epoch, their segments in the order of the text; a document is a run.
/// - columns: the stream in B equal columns, L tokens of each a micro-batch (or lengths that vary:
///   column_cuts.h), in the order of the text: State is carried, rows are fresh only where an epoch
///   begins; a column is a run.
/// - order: segments as an order shard lists them, B at a time; each epoch these micro-batches come
///   in a new order, so that neighbours stay together (TRIME's ext); a segment is a run.
/// - pairs, and order with pairs: see pair_order.h.
/// Segments are numbered in the order of the text; the number is the same in every epoch, and names
/// the same tokens unless lengths vary.
class Order {
 public:
  virtual ~Order() = default;
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual std::int64_t targets_per_epoch() const = 0;
  /// Rows of micro-batch `index` (0, 1, ... over all epochs). Not thread safe: keeps the epoch's
  /// permutation.
  virtual std::vector<Row> rows(std::int64_t index) = 0;
  /// True if consecutive micro-batches continue each other's rows.
  virtual bool carries() const { return false; }
};

/// `data` must be tokens or pairs, and outlive the order. `order` is needed by "order" alone.
/// Throws Error{bad_data} if the data have no target, or are not those the order shard was made for
/// (naming both), Error{usage}.
std::unique_ptr<Order> make_order(const BatchOptions& options, const shard::Dataset& data,
                                  const shard::Dataset* order, std::uint64_t seed);

/// A micro-batch, ready to train on.
struct MicroBatch {
  std::int64_t index = 0;
  nn::Batch batch;             ///< (rows, longest row); the rest of shorter rows is padding
  std::int64_t tokens = 0;     ///< scored
  nn::Teachers teachers = {};  ///< of its targets, where they are given
};

/// A process's share of each update's micro-batches: of every `of`, [begin, begin + count).
struct Share {
  std::int64_t begin = 0, count = 1, of = 1;
};

/// Reads the rows' tokens. Throws as Dataset::read.
MicroBatch read_batch(const shard::Dataset& data, const std::vector<Row>& rows, std::int64_t index);

/// What is fed and what is learned, beside the text itself.
struct TokenRules {
  std::vector<std::int64_t> unscored;  ///< targets that get weight 0
  /// Stands in the place of the first input of each fresh row; -1: the text's own does.
  std::int64_t begin = -1;
  /// Those whose marks say what is learned: other targets get weight 0. Null: all are learned.
  const shard::Documents* marks = nullptr;
};
void apply(const TokenRules& rules, MicroBatch& micro);

}  // namespace train
