#pragma once
// Order shards, as train reads them.

#include <cstdint>
#include <string>
#include <vector>

#include "shard/dataset.h"

namespace train {

/// The numbers in `order`, which must be a shard of kind order, made for `data` and of `unit`
/// ("segment", "pair"). Throws Error{bad_data} naming both. What the numbers mean is the caller's
/// to check.
std::vector<std::uint64_t> read_order(const shard::Dataset& order, const shard::Dataset& data,
                                      const std::string& unit);

}  // namespace train
