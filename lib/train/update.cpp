#include "train/update.h"

#include <numbers>

#include "nn/base/cuda.h"

namespace train {

Schedule::Schedule(const ScheduleOptions& options, double lr, std::int64_t steps)
    : options_(options), lr_(lr), warmup_(static_cast<double>(share_of(options.warmup, steps))),
      period_(std::max(1.0, static_cast<double>(steps) - warmup_)) {
  if (options.schedule == "cosine-restarts" && options.period > 0) period_ = options.period;
}

double Schedule::cosine(double done, double period, double scale) const {
  const double low = options_.min_lr * scale, high = lr_ * scale;
  return low + 0.5 * (high - low) * (1 + std::cos(std::numbers::pi * std::min(1.0, done / period)));
}

double Schedule::restarts(double since) const {
  const double m = options_.t_mult;
  double i = std::floor(since / period_), begin = period_ * i, period = period_;
  if (m > 1) {
    // The periods before the i-th take period (m^i - 1) / (m - 1). The small term assigns a restart
    // to its own step.
    i = std::floor(std::log(1 + since / period_ * (m - 1)) / std::log(m) + 1e-12);
    period = period_ * std::pow(m, i);
    begin = (period - period_) / (m - 1);
  }
  return cosine(since - begin, period, std::pow(options_.lr_shrink, i));
}

double Schedule::at(std::int64_t step) const {
  const double now = static_cast<double>(step);
  if (now < warmup_)
    return options_.warmup_init_lr + (lr_ - options_.warmup_init_lr) * now / warmup_;
  if (options_.schedule == "linear")
    return lr_ + (options_.min_lr - lr_) * std::min(1.0, (now - warmup_) / period_);
  if (options_.schedule == "cosine") return cosine(now - warmup_, period_, 1);
  if (options_.schedule == "cosine-restarts") return restarts(now - warmup_);
  if (options_.schedule == "inverse-sqrt")
    return lr_ * std::sqrt(std::max(1.0, warmup_) / std::max(1.0, now));
  return lr_;
}

namespace {

struct Hook : torch::autograd::PostAccumulateGradHook {
  Hook(std::function<void(std::size_t)> to_call, std::size_t of_weight)
      : arrived(std::move(to_call)), weight(of_weight) {}
  void operator()(const torch::autograd::Variable& /*tensor*/) override { arrived(weight); }
  std::function<void(std::size_t)> arrived;
  std::size_t weight;
};

bool has_gradient(const torch::Tensor& weight) {
  return weight.is_leaf() && weight.requires_grad();
}

}  // namespace

void descend(
    Update& update, Optimiser& optimiser, double clip, std::int64_t step, torch::Tensor norm) {
  const torch::NoGradGuard no_grad;
  const auto device = update.loss.device();
  // If no target is scored, nothing is learned.
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(1, update.scored));
  if (!norm.defined()) norm = gradient_norm(optimiser.weights());
  update.norm = norm.to(device) * share;
  if (nn::in_host_memory(update.loss) && !std::isfinite(update.norm.item<double>()))
    core::bad_data(
        "step {}: the gradient is not finite; lower --lr, lengthen --warmup or set --clip",
        step + 1);
  auto scale = torch::full({}, share, torch::TensorOptions().dtype(torch::kFloat64).device(device));
  if (clip > 0) scale = scale * (clip / (update.norm + 1e-6)).clamp_max(1);
  optimiser.step(update.lr, scale);
}

void put_optimiser(model::Checkpoint& checkpoint, const Optimiser& optimiser) {
  for (const auto& [name, tensor] : optimiser.tensors())
    checkpoint.tensors["optimiser." + name] = tensor;
  checkpoint.facts["optimiser"] = optimiser.numbers();
}

void get_optimiser(const model::Checkpoint& checkpoint, Optimiser& optimiser) {
  optimiser.restore(
      [&](const std::string& name) { return checkpoint.tensor("optimiser." + name); });
  optimiser.set_numbers(
      core::get<std::vector<double>>(checkpoint.facts, "optimiser", checkpoint.origin));
}

GradientHooks::GradientHooks(
    const NamedWeights& weights, const std::function<void(std::size_t)>& arrived)
    : weights_(weights) {
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (const auto& weight = weights_[i].second; has_gradient(weight))
      torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<Hook>(arrived, i));
}

GradientHooks::~GradientHooks() {
  for (const auto& [name, weight] : weights_)
    if (has_gradient(weight)) torch::autograd::impl::set_post_acc_grad_hooks(weight, nullptr);
}

}  // namespace train
