#pragma once
// The loss of a model that reads a source on a shard of pairs.

#include <cstdint>
#include <functional>

#include "infer/totals.h"
#include "nn/model.h"
#include "nn/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Every token of every target is scored once, its end-of-document token included, by the model
/// without memories. Pairs of about one length go through the model together, at most
/// `batch_tokens` target tokens at once. Bytes and words are those of the targets' texts. The model
/// is left in the mode it was in. `progress`, if not empty, gets the tokens so far and may throw to
/// stop. Throws Error{bad_data} as check_pairs and read_pairs do, and for a loss that is not
/// finite.
Totals score_pairs(nn::Model& model, const shard::Dataset& data, std::int64_t batch_tokens,
                   torch::Device device, const std::function<void(std::uint64_t)>& progress = {});

}  // namespace infer
