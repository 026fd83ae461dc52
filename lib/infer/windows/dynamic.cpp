#include "infer/windows/dynamic.h"

#include "nn/memory/joint_loss.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr double kMeanFade = 0.9, kSquareFade = 0.999, kLeastRoot = 1e-8;
constexpr std::int64_t kRank = 8;

}  // namespace

void DynamicOptions::fields(core::FieldList& f, bool prompts) {
  const auto in_group = f.group("Dynamic evaluation");
  f("dynamic-evaluation", on,
      prompts ? "train the weights on each prompt before it is continued"
              : "train the weights on each window after it was scored");
  f.rest_needs("dynamic-evaluation");
  if (prompts) f("dynamic-block", block, "tokens of the prompt per step").between(1, 1e9);
  f("dynamic-rate", rate, "learning rate").between(0, 10);
  f("dynamic-weights", weights, "train all, norms and biases, or LoRA", {"all", "norms", "lora"});
  f("dynamic-optimiser", optimiser, "optimiser of the steps", {"sgd", "adam"});
  f("dynamic-decay", decay, "mean fraction of the way back to the original weights, per step")
      .between(0, 1);
}

void DynamicOptions::check(bool unusual, const std::string& dtype) const {
  if (on && (unusual || !dtype.starts_with("float")))
    core::bad_usage(
        "--dynamic-evaluation: not supported with sentence pairs, --retrieve, --source, score "
        "--carry on, or a --dtype but float32 and float64");
}

DynamicWeights::DynamicWeights(nn::Model& model, const DynamicOptions& options)
    : model_(model), options_(options) {
  const bool lora = options.weights == "lora", norms = options.weights == "norms";
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  for (auto& [name, weight] : model.named_weights()) {
    if (lora ? !nn::is_hidden_matrix(name, weight) : norms && weight.dim() > 1) continue;
    const Tensor initial = initial_.emplace_back(weight.detach());
    weight.set_data(initial.clone());  // the file may be mapped
    weights_.push_back(weight);
    if (!lora) trained_.push_back({weight, initial});
    if (!lora) continue;
    const auto rows = initial.size(0), width = initial.size(1);
    const Tensor a = torch::randn({kRank, width}, generator) / std::sqrt(width);
    trained_.push_back({initial.new_zeros({rows, kRank}), initial.new_zeros({1})});
    trained_.push_back({a.to(initial, /*non_blocking=*/false, /*copy=*/true), a.to(initial)});
  }
  if (weights_.empty())
    core::bad_usage("--dynamic-weights {}: the model has none", options.weights);
}

DynamicWeights::~DynamicWeights() {
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i].set_data(initial_[i]);
}

void DynamicWeights::learn(const nn::Batch& batch, const std::function<nn::Hidden()>& forward) {
  const torch::AutoGradMode with_gradient(true);
  const auto [output, key] = forward();
  const Tensor loss = nn::joint_loss(output, key, batch, *model_.head, {}, {});
  const auto gradients = torch::autograd::grad({loss / batch.weight.sum().item<double>()}, weights_,
      {}, {}, /*create_graph=*/false, /*allow_unused=*/true);
  const torch::NoGradGuard no_gradient;
  ++steps_;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor g = gradients[i].to_dense();  // those of tables are sparse
    if (options_.weights != "lora") {
      step(trained_[i], g);
      continue;
    }
    auto &b = trained_[2 * i], &a = trained_[2 * i + 1];
    const Tensor of_a = b.at.t().matmul(g);
    step(b, g.matmul(a.at.t())), step(a, of_a);
    weights_[i].copy_(initial_[i].addmm(b.at, a.at));
  }
}

void DynamicWeights::step(Trained& of, const Tensor& gradient) const {
  auto& [at, initial, mean, square] = of;
  const bool sgd = options_.optimiser == "sgd";
  if (sgd) at.sub_(gradient, options_.rate);
  if (sgd && options_.decay == 0) return;
  if (!square.defined()) mean = torch::zeros_like(at), square = torch::zeros_like(at);
  mean.lerp_(gradient, 1 - kMeanFade);
  square.mul_(kSquareFade).addcmul_(gradient, gradient, 1 - kSquareFade);
  const Tensor root = square.sqrt();
  if (!sgd)
    at.addcdiv_(mean, root / std::sqrt(1 - std::pow(kSquareFade, steps_)) + kLeastRoot,
        -options_.rate / (1 - std::pow(kMeanFade, steps_)));
  if (options_.decay == 0) return;
  at.add_((root * (options_.decay / (root.mean() + 1e-30))).clamp_max_(1) * (initial - at));
}

}  // namespace infer
