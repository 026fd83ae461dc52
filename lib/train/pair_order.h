#pragma once
// The order of batches of a shard of pairs.

#include <cstdint>
#include <memory>

#include "shard/dataset.h"
#include "train/batches.h"
#include "train/train_options.h"

namespace train {

/// Micro-batches are groups of pairs with at most options.batch_tokens target tokens, padding
/// included (a longer pair is alone). Without an order shard pairs of about one length are
/// together: sorted by the lengths of target and source, equal ones in an order of the seed's; with
/// one, neighbours of its list are. Which pairs are a group is the same in every epoch; the groups
/// come in a new order each. A pair is a run and a segment. `data` must outlive it. Throws
/// Error{bad_data} as infer::check_pairs, and for an order of other data or of another unit.
std::unique_ptr<Order> make_pair_order(const BatchOptions& options, const shard::Dataset& data,
                                       const shard::Dataset* order, std::uint64_t seed);

/// Throws Error{usage} if a side is longer than a model's learned positions.
void check_pair_lengths(const shard::Dataset& data, std::int64_t context);

/// As read_batch, of pairs.
MicroBatch read_pair_batch(const shard::Dataset& data, const std::vector<Row>& rows,
                           std::int64_t index);

}  // namespace train
