#include "train/lora.h"

#include "model/adapter.h"

namespace train {
namespace {

constexpr std::string_view kMatrix = ".weight";

model::AdapterRules rules_of(const LoraOptions& options) {
  const auto& targets = options.lora_targets;
  core::Json config = {{"r", options.lora}, {"lora_alpha", options.alpha()}};
  if (targets.size() == 1 && targets[0] == "all-linear") config["target_modules"] = targets[0];
  else config["target_modules"] = targets;
  return {core::dump(config), "--lora-targets"};
}

}  // namespace

Lora::Lora(
    std::shared_ptr<nn::Model> model, const model::Family& family, const LoraOptions& options)
    : model_(std::move(model)), options_(options),
      scale_(options.alpha() / static_cast<double>(options.lora)) {
  const auto rules = rules_of(options);
  for (const auto& [name, weight] : model_->named_weights()) {
    // peft does not find experts by name either.
    const bool linear = nn::is_hidden_matrix(name, weight) && name.ends_with(kMatrix);
    bool has_term = false;
    for (const auto& piece : model::pieces_of(&family, model_->options, name, weight.size(0))) {
      const auto module = piece.tensor.substr(0, piece.tensor.size() - kMatrix.size());
      if (!linear || !rules.targets(module, true)) continue;
      has_term = true;
      const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
      const auto a = torch::empty({options.lora, weight.size(1)}, torch::kFloat32);
      const auto b = torch::zeros({piece.rows, options.lora}, torch::kFloat32);
      const torch::NoGradGuard no_grad;
      a.uniform_(-bound, bound);
      terms_.push_back({module, weight, piece,
          weight.detach().narrow(0, piece.begin, piece.rows).clone(), a, b});
    }
    if (!has_term) torch::Tensor(weight).set_requires_grad(false);
  }
  if (terms_.empty())
    core::bad_usage("--lora-targets: {} is not a linear layer of the model",
        fmt::join(options.lora_targets, ", "));
  for (const auto& target : options.lora_targets)
    if (target != "all-linear" && std::none_of(terms_.begin(), terms_.end(), [&](const Term& term) {
          return term.module == target || term.module.ends_with("." + target);
        }))
      core::bad_usage("--lora-targets: {} is not a linear layer of the model", target);
}

void Lora::to(torch::Device device) {
  for (auto& term : terms_)
    for (auto* tensor : {&term.first, &term.a, &term.b}) *tensor = tensor->to(device);
}

NamedWeights Lora::weights() const {
  NamedWeights weights;
  for (const auto& term : terms_) {
    weights.emplace_back(term.module + ".lora_A.weight", term.a);
    weights.emplace_back(term.module + ".lora_B.weight", term.b);
  }
  return weights;
}

void Lora::take_gradients() {
  const torch::NoGradGuard no_grad;
  const auto add = [](torch::Tensor& to, const torch::Tensor& gradient) {
    auto& sum = to.mutable_grad();
    if (sum.defined()) sum.add_(gradient);
    else sum = gradient;
  };
  for (auto& term : terms_) {
    const auto& whole = term.weight.grad();
    if (!whole.defined()) continue;
    auto gradient = whole.narrow(0, term.piece.begin, term.piece.rows);  // (out, in)
    if (term.piece.layout == model::Layout::by_head) gradient = term.piece.there(gradient);
    gradient = gradient.to(torch::kFloat32);
    add(term.a, term.b.t().matmul(gradient).mul_(scale_));
    add(term.b, gradient.matmul(term.a.t()).mul_(scale_));
  }
  for (auto& term : terms_) term.weight.mutable_grad().reset();
}

void Lora::apply() {
  const torch::NoGradGuard no_grad;
  for (auto& term : terms_) {
    auto product = model::low_rank_term(term.a, term.b, scale_);
    if (term.piece.layout == model::Layout::by_head) product = term.piece.here(product);
    term.weight.narrow(0, term.piece.begin, term.piece.rows).copy_(term.first + product);
  }
}

void Lora::save(const std::string& folder, const std::string& base) const {
  std::set<std::string> targets;
  bool transposed = false;
  std::vector<model::AdapterTerm> terms;
  for (const auto& term : terms_) {
    targets.insert(term.module.substr(term.module.rfind('.') + 1));  // such as "q_proj"
    transposed = transposed || term.piece.layout == model::Layout::transposed;
    terms.push_back({term.module, term.a, term.b});
  }
  if (options_.lora_targets != std::vector<std::string>{"all-linear"})
    targets = {options_.lora_targets.begin(), options_.lora_targets.end()};
  model::save_adapter(folder,
      {options_.lora, options_.alpha(), {targets.begin(), targets.end()}, transposed, base}, terms);
}

}  // namespace train
