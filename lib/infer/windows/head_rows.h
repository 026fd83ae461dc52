#pragma once
// Scores that the model's own head gives to the rows of a window.

#include "nn/base/architecture.h"

namespace infer {

/// Features of the model's own distribution: its entropy in nats, its highest probability, and the
/// logarithm of that probability.
inline const std::vector<std::string> kConfidence = {"entropy", "top", "log-top"};
/// Returns the confidence (R, kConfidence), float64, of log-probabilities (R, V) on their device.
torch::Tensor confidence_of(const torch::Tensor& log_probs);

/// Head output for R rows: log p of the target and the first level's log-sum-exp, each (R).
struct HeadRows {
  torch::Tensor log_prob, log_z;
  torch::Tensor confidence = {};  ///< (R, kConfidence), if gates need it
  torch::Tensor tempered = {};    ///< (R, temperatures) log p of the target, if any are given

  HeadRows slice(std::int64_t begin, std::int64_t end) const {
    const auto some = [&](const torch::Tensor& of) {
      return of.defined() ? of.slice(0, begin, end) : of;
    };
    return {some(log_prob), some(log_z), some(confidence), some(tempered)};
  }
};
/// Computes the rows block by block, without gradient. f (R, d), targets (R). `confident` also
/// computes the confidence, `temperatures` log p of the target in the softmax of each: p^(1/t) over
/// the sum of p^(1/t) of all tokens. Both need whole rows.
HeadRows head_rows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets,
    bool confident = false, const std::vector<double>& temperatures = {});
/// Returns log p (R, V) at a temperature.
torch::Tensor at_temperature(const torch::Tensor& log_probs, double temperature);

}  // namespace infer
