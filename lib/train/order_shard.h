#pragma once
// Reads order shards for training.

#include <cstdint>
#include <string>
#include <vector>

#include "shard/dataset.h"

namespace train {

/// Returns the numbers in `order`, which must be a shard of kind order, made for `data`, with this
/// `unit` ("segment", "pair"). Throws Error{bad_data} that names both shards. The caller checks the
/// range of the numbers.
std::vector<std::uint64_t> read_order(const shard::Dataset& order, const shard::Dataset& data,
                                      const std::string& unit);

}  // namespace train
