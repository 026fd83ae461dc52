#pragma once
// Order of batches for a shard of pairs.
// Reads order shards for training.

#include "train/batches.h"

namespace train {

/// Creates the order. Micro-batches are groups of pairs with at most options.batch_tokens target
/// tokens including padding (a longer pair forms its own group). Without an order shard, pairs of
/// similar length are grouped: sorted by the lengths of target and source, ties in a seeded order;
/// with one, neighbours in its list. Groups are equal in every epoch and come in a new order each
/// epoch. A pair is a run and a segment. `data` must outlive the order. Throws Error{bad_data} as
/// batch::check_pairs, and for an order of other data or another unit.
std::unique_ptr<Order> make_pair_order(const BatchOptions& options, const shard::Dataset& data,
    const shard::Dataset* order, std::uint64_t seed);

/// Throws Error{usage} if a side exceeds a model's learned positions.
void check_pair_lengths(const shard::Dataset& data, std::int64_t context);

/// Reads pairs, as read_batch reads tokens.
MicroBatch read_pair_batch(
    const shard::Dataset& data, const std::vector<Row>& rows, std::int64_t index);

/// Returns the numbers in `order`, which must be a shard of kind order, made for `data`, with this
/// `unit` ("segment", "pair"). Throws Error{bad_data} that names both shards. The caller checks the
/// range of the numbers.
std::vector<std::uint64_t> read_order(
    const shard::Dataset& order, const shard::Dataset& data, const std::string& unit);

}  // namespace train
