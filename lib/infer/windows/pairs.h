#pragma once
// Converts shards of pairs, source and target, to batches for a model that reads a source.

#include "infer/windows/window_plan.h"

namespace infer {

/// Elements of the shard that form one side of a pair, including the end-of-document token.
struct Side {
  std::uint64_t begin = 0;
  std::int64_t length = 0;
};
Side source_of(const shard::Documents& documents, std::int64_t pair);
Side target_of(const shard::Documents& documents, std::int64_t pair);

/// Checks that `data` are pairs, at least one, with non-empty sides, whose tokenizer has an
/// end-of-document token. Throws Error{bad_data}.
void check_pairs(const shard::Dataset& data);
/// Also throws for a model that reads no source.
void check_pairs(const shard::Dataset& data, const nn::Model& model);

/// Returns the plan that scores every token of every target, including its end-of-document token,
/// given its source: one window for each pair. Throws the errors of check_pairs().
WindowPlan pair_windows(
    const shard::Dataset& data, const nn::Model& model, std::int64_t batch_tokens);

/// Reads pairs into a batch, one row for each pair, with source and target padded on the right.
/// With end token e and target y_1 ... y_n e, inputs are e y_1 ... y_n and targets y_1 ... y_n e;
/// the source keeps its own e. Run and segment of the places are the pair's number, positions are
/// the elements' offsets. All rows are fresh. Throws Error{bad_data} for a pair that does not end
/// with e.
nn::Batch read_pairs(const shard::Dataset& data, const std::vector<std::int64_t>& pairs);

/// Groups consecutive pairs of `order`: at most `batch_tokens` target tokens in a group, including
/// padding, and at least one pair.
std::vector<std::vector<std::int64_t>> group_pairs(const shard::Documents& documents,
    const std::vector<std::int64_t>& order, std::int64_t batch_tokens);

}  // namespace infer
