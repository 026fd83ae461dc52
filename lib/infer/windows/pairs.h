#pragma once
// Shards of pairs, source and target, as batches for a model that reads a source.

#include <cstdint>
#include <vector>

#include "infer/windows/window_plan.h"
#include "nn/arch/model.h"
#include "nn/base/batch.h"
#include "shard/dataset.h"

namespace infer {

/// Elements of the shard that are one side of a pair, end-of-document token included.
struct Side {
  std::uint64_t begin = 0;
  std::int64_t length = 0;
};
Side source_of(const shard::Documents& documents, std::int64_t pair);
Side target_of(const shard::Documents& documents, std::int64_t pair);

/// Throws Error{bad_data} unless `data` are pairs, at least one, whose tokenizer has an
/// end-of-document token and whose sides all have a token or more.
void check_pairs(const shard::Dataset& data);

/// Windows that score every token of every target, its end-of-document token included, read with
/// its source: one window a pair. Throws Error{bad_data} as check_pairs, and for a model that reads
/// no source.
WindowPlan pair_windows(const shard::Dataset& data, const nn::Model& model,
                        std::int64_t batch_tokens);

/// One row a pair, source and target padded on the right. With e the end-of-document token and
/// y_1 ... y_n e the target, inputs are e y_1 ... y_n and targets y_1 ... y_n e; the source keeps
/// its own e. Run and segment of the places are the pair's number, positions the elements'
/// offsets. All rows are fresh. Throws Error{bad_data} for a pair that does not end with e.
nn::Batch read_pairs(const shard::Dataset& data, const std::vector<std::int64_t>& pairs);

/// Pairs of `order` in groups of neighbours: at most `batch_tokens` target tokens a group, padding
/// included, and at least one pair.
std::vector<std::vector<std::int64_t>> group_pairs(const shard::Documents& documents,
                                                   const std::vector<std::int64_t>& order,
                                                   std::int64_t batch_tokens);

}  // namespace infer
