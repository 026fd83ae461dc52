#pragma once
// A transformer written out from its definition: one row, one token and one head at a time.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace plain {

using Weights = std::map<std::string, torch::Tensor>;

struct Output {
  torch::Tensor output, key;  // (T, d)
  std::vector<torch::Tensor> last =
      {};  // of each layer, (heads, T): the attention of the last token
};

/// One row of tokens without padding, in evaluation.
Output transformer(
    const nn::ModelOptions& options, const Weights& weights, const std::vector<std::int64_t>& ids);

/// Returns the input vector of one token, (d): its row of its band, projected, or of the only
/// table.
torch::Tensor word_vector(const nn::ModelOptions& options, const Weights& weights,
    const std::string& prefix, std::int64_t id);

}  // namespace plain
