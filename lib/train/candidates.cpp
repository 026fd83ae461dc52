#include "train/candidates.h"

namespace train {
namespace {

torch::Tensor copy_of(const torch::Tensor& weight) {
  return weight.detach().to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

Candidates::Candidates(
    std::int64_t average, std::int64_t every, std::int64_t steps, std::string by, bool higher)
    : average_(average), every_(every), steps_(steps), by_(std::move(by)), higher_(higher) {}

bool Candidates::reads(std::int64_t step) const {
  const auto left = steps_ - step;
  return left % every_ == 0 && left / every_ < average_;
}

void Candidates::passed(std::int64_t step, const NamedWeights& weights) {
  if (!reads(step)) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights) {
    auto& sum = kept_[name];
    sum = sum.defined() ? sum + weight.detach().to(torch::kCPU) : copy_of(weight);
  }
  ++summed_;
}

void Candidates::scored(std::int64_t step, double score, const NamedWeights& weights,
    std::optional<double> joint_temperature) {
  const bool better = !best_ || (higher_ ? score > best_->score : score < best_->score);
  if (!better) return;
  best_ = {score, step};
  if (average_ > 0) return;
  joint_temperature_ = joint_temperature;
  for (const auto& [name, weight] : weights) kept_[name] = copy_of(weight);
}

void Candidates::give(const NamedWeights& weights) const {
  if (kept_.empty()) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights) {
    const auto& kept = kept_.at(name);
    torch::Tensor(weight).copy_(average_ > 0 ? kept / static_cast<double>(summed_) : kept);
  }
}

void Candidates::put(model::Checkpoint& checkpoint) const {
  auto& facts = checkpoint.facts;
  facts["summed"] = summed_;
  if (best_) {
    facts["best_score"] = best_->score;
    facts["best_step"] = best_->step;
    facts["best_by"] = by_;
  }
  if (joint_temperature_) facts["best_joint_temperature"] = *joint_temperature_;
  for (const auto& [name, tensor] : kept_) checkpoint.tensors["candidate." + name] = tensor;
}

void Candidates::get(const model::Checkpoint& checkpoint, const NamedWeights& weights) {
  const auto& facts = checkpoint.facts;
  summed_ = core::get<std::int64_t>(facts, "summed", checkpoint.origin);
  if (facts.contains("best_score")) {
    best_ = {core::get<double>(facts, "best_score", checkpoint.origin),
        core::get<std::int64_t>(facts, "best_step", checkpoint.origin)};
    const auto by = core::get<std::string>(facts, "best_by", checkpoint.origin);
    if (by != by_)
      core::bad_usage("{}: the best model so far was chosen by {}, now by {}; use the same",
          checkpoint.origin, by, by_);
  }
  if (facts.contains("best_joint_temperature"))
    joint_temperature_ = core::get<double>(facts, "best_joint_temperature", checkpoint.origin);
  if (summed_ == 0 && (average_ > 0 || !best_)) return;
  for (const auto& [name, weight] : weights) kept_[name] = checkpoint.tensor("candidate." + name);
}

}  // namespace train
