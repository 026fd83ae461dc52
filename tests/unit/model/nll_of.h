#pragma once
// Compares the negative log-likelihood of each token with another program's.

#include <string>
#include <vector>

#include "core/io.h"
#include "core/json.h"
#include "small_models.h"

/// Models and checkpoints of other programs, with the values that those programs computed.
inline const std::string kGoldenFamilies = "tests/golden/families/";
inline const std::string kGoldenCheckpoints = "tests/golden/checkpoints/";

/// Returns the values of each token after the first, float64.
inline torch::Tensor nll_of(nn::Model& model, const torch::Tensor& ids) {
  std::vector<torch::Tensor> each;
  for (std::int64_t n = 2; n <= ids.numel(); ++n)
    each.push_back(torch::tensor(
        loss_of(model, ids.slice(0, 0, n)) * static_cast<double>(n - 1), torch::kFloat64));
  const auto sums = torch::stack(each);
  return torch::cat({sums.slice(0, 0, 1), sums.diff()});
}

struct GoldenNll {
  torch::Tensor ids, nll;
};

/// Reads {"ids", "nll"}.
inline GoldenNll golden_nll(const std::string& path) {
  const auto json = core::parse_json(core::read_text(path), path);
  return {torch::tensor(json["ids"].get<std::vector<std::int64_t>>()),
      torch::tensor(json["nll"].get<std::vector<double>>(), torch::kFloat64)};
}

inline double nll_gap(nn::Model& model, const GoldenNll& expected) {
  return (nll_of(model, expected.ids) - expected.nll).abs().max().item<double>();
}
