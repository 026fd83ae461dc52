#include "train/optimiser.h"

#include "nn/arch/model.h"
#include "nn/base/cuda.h"
#include "nn/ops/gathered_sum.h"

namespace train {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

bool fusable(const torch::Tensor& tensor) {
  return nn::in_host_memory(tensor) && tensor.scalar_type() == torch::kFloat32 &&
         tensor.is_contiguous();
}

// What updates a weight: a loop on the CPU, a kernel on a GPU, or torch's operators.
enum class By { loop, kernel, operators };
By chosen(const torch::Tensor& w, const torch::Tensor& g) {
  if (fusable(w) && fusable(g)) return By::loop;
  const bool dense = w.is_contiguous() && g.is_contiguous();
  return dense && nn::cuda_kernels(w) != nullptr && nn::cuda_kernels(g) != nullptr ? By::kernel
                                                                                   : By::operators;
}

torch::Tensor dense(const torch::Tensor& gradient) {
  return gradient.is_sparse() ? gradient.to_dense() : gradient;
}

/// An update: w -= step m / (root sqrt(v) + epsilon), optimiser.h.
struct AdamStep {
  double step, root, epsilon;
};

AdamStep adam_step(const OptimiserOptions& o, double lr, std::int64_t updates) {
  const auto t = static_cast<double>(updates);
  const bool corrects = o.bias_correction;
  const double correct1 = corrects ? 1 - std::pow(o.beta1, t) : 1;
  const double fade2 = corrects ? std::pow(o.beta2, t) : 0;
  const double correct2 = std::sqrt(1 - fade2);
  if (o.optimiser == "adamw" || o.optimiser == "muon")
    return {lr / correct1, 1 / correct2, o.epsilon};
  if (o.optimiser == "adam") return {lr * correct2 / correct1, 1, o.epsilon};
  // RAdam's rectification for the variance of early steps. Until it is defined, the step does not
  // divide by the root.
  const double most = 2 / (1 - o.beta2) - 1, length = most - 2 * t * fade2 / (1 - fade2);
  if (length < 5) return {lr / correct1, 0, 1};
  const double rectified =
      std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
  return {lr * rectified * correct2 / correct1, 1, o.epsilon};
}

// A table's update: work(row, gradient) of each row whose gradient is not all zeros. `rows` (R)
// int64 numbers those of g (R, d); undefined: all rows.
template <class Work>
void each_row_read(const torch::Tensor& rows, const torch::Tensor& g, const Work& work) {
  const auto width = g.size(1);
  const auto* const row = rows.defined() ? rows.const_data_ptr<std::int64_t>() : nullptr;
  const auto* const of = g.const_data_ptr<float>();
  const auto grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width));
  at::parallel_for(0, g.size(0), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto* const own = of + i * width;
      if (std::any_of(own, own + width, [](float x) { return x != 0; }))
        work(row != nullptr ? row[i] : i, own);
    }
  });
}

// The same by torch's operators: from[i] into to[i] in the rows where g is not all zeros.
void put_rows_read(const torch::Tensor& g, const std::vector<torch::Tensor>& to,
    const std::vector<torch::Tensor>& from) {
  const auto read = (g != 0).any(1, /*keepdim=*/true);
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(torch::where(read, from[i], to[i]));
}

// The gradient of a table, as each_row_read() takes it; g undefined: not one for the loop.
struct TableGradient {
  torch::Tensor rows, g;
};
TableGradient table_gradient(const torch::Tensor& w) {
  const auto& g = w.grad();
  if (!fusable(w)) return {};
  if (g.is_sparse())
    return {nn::rows_of_gradient(g).contiguous(), nn::values_of_gradient(g).contiguous()};
  return {{}, fusable(g) ? g : torch::Tensor()};
}

/// The rule of Adam for a weight. A rule's tensors are the weight and its moments, in the order of
/// its span's pointers.
struct AdamRule {
  using Span = nn::AdamSpan;
  const OptimiserOptions& options;
  AdamStep how;
  double keep;

  nn::AdamSpan span(const std::vector<torch::Tensor>& tensors, const float* scale) const {
    nn::AdamSpan span{};
    span.w = tensors[0].data_ptr<float>(), span.m = tensors[1].data_ptr<float>();
    span.v = tensors[2].data_ptr<float>();
    span.scale = scale;
    span.keep = static_cast<float>(keep);
    span.b1 = static_cast<float>(options.beta1), span.b2 = static_cast<float>(options.beta2);
    span.rest1 = static_cast<float>(1 - options.beta1);
    span.rest2 = static_cast<float>(1 - options.beta2);
    span.step = static_cast<float>(how.step), span.root = static_cast<float>(how.root);
    span.epsilon = static_cast<float>(how.epsilon);
    return span;
  }
  static void skip(nn::AdamSpan& span, std::int64_t n) { span.w += n, span.m += n, span.v += n; }
  static constexpr auto loop = nn::adam_cpu;
  static constexpr auto kernel = &nn::CudaKernels::adam;
  static constexpr const char* kKernel = "adam";
  void operators(std::vector<torch::Tensor>& tensors, const torch::Tensor& g) const {
    auto &w = tensors[0], &m = tensors[1], &v = tensors[2];
    m.mul_(options.beta1).add_(g, 1 - options.beta1);
    v.mul_(options.beta2).addcmul_(g, g, 1 - options.beta2);
    w.mul_(keep).addcdiv_(m, v.sqrt().mul_(how.root).add_(how.epsilon), -how.step);
  }
};

/// The rule of Nag for a weight.
struct NagRule {
  using Span = nn::NagSpan;
  double keep, pull, push, fade, lr;

  nn::NagSpan span(const std::vector<torch::Tensor>& tensors, const float* scale) const {
    nn::NagSpan span{};
    span.w = tensors[0].data_ptr<float>(), span.u = tensors[1].data_ptr<float>();
    span.scale = scale;
    span.keep = static_cast<float>(keep);
    span.pull = static_cast<float>(pull), span.push = static_cast<float>(push);
    span.fade = static_cast<float>(fade), span.lr = static_cast<float>(lr);
    return span;
  }
  static void skip(nn::NagSpan& span, std::int64_t n) { span.w += n, span.u += n; }
  static constexpr auto loop = nn::nag_cpu;
  static constexpr auto kernel = &nn::CudaKernels::nag;
  static constexpr const char* kKernel = "nag";
  void operators(std::vector<torch::Tensor>& tensors, const torch::Tensor& g) const {
    auto &w = tensors[0], &u = tensors[1];
    w.mul_(keep).add_(u, pull).sub_(g, push);
    u.mul_(fade).sub_(g, lr);
  }
};

// The updates of a step, each in the way that fits its weight and gradient: the rows of a table
// that have a gradient, all numbers by a loop, torch's operators, or on a GPU a kernel for all
// weights.
template <class Rule> class Updates {
 public:
  explicit Updates(const torch::Tensor& scale)
      : scale_(scale), factor_(scale.to(torch::kFloat32)) {}

  void add(const Rule& rule, const std::vector<torch::Tensor>& tensors, bool table) {
    const auto& w = tensors[0];
    if (table && !w.grad().defined()) return;
    if (const auto read = table ? table_gradient(w) : TableGradient{}; read.g.defined()) {
      const auto whole = rule.span(tensors, factor_.template const_data_ptr<float>());
      return each_row_read(read.rows, read.g, [&](std::int64_t row, const float* g) {
        auto one = whole;
        Rule::skip(one, row * w.size(1));
        one.g = g, one.n = w.size(1);
        Rule::loop(one, 0, one.n);
      });
    }
    const auto g = w.grad().defined() ? dense(w.grad()) : torch::zeros_like(w);
    const auto by = chosen(w, g);
    if (table || by == By::operators) return by_operators(rule, tensors, g, table);
    auto span = rule.span(tensors, factor_.template const_data_ptr<float>());
    span.g = g.template const_data_ptr<float>(), span.n = w.numel();
    if (by == By::kernel) {
      weight_ = w;
      gradients_.push_back(g), spans_.push_back(span);
      return;
    }
    at::parallel_for(0, span.n, kGrain,
        [&](std::int64_t begin, std::int64_t end) { Rule::loop(span, begin, end); });
  }

  void finish() {
    if (spans_.empty()) return;
    const auto launch = nn::cuda_kernels(weight_)->*Rule::kernel;
    nn::check_launch(
        launch(spans_.data(), std::ssize(spans_), nn::cuda_stream(weight_)), Rule::kKernel);
  }

 private:
  void by_operators(const Rule& rule, const std::vector<torch::Tensor>& tensors,
      const torch::Tensor& g, bool table) const {
    auto to = tensors;
    if (table)
      for (auto& tensor : to) tensor = tensor.clone();
    rule.operators(to, g * scale_.to(g.scalar_type()));
    if (table) put_rows_read(g, tensors, to);
  }

  const torch::Tensor scale_, factor_;    // equal; the latter in float32
  torch::Tensor weight_;                  // one of those that the kernel updates
  std::vector<torch::Tensor> gradients_;  // of these weights
  std::vector<typename Rule::Span> spans_;
};

class Adam : public Optimiser {
 public:
  using Optimiser::Optimiser;

  void step(double lr, const torch::Tensor& scale) override {
    const torch::NoGradGuard no_grad;
    ++updates_;
    const auto how = adam_step(options_, lr, updates_);
    Updates<AdamRule> updates(scale);
    for (std::size_t i = 0; i < weights_.size(); ++i) step_of(i, lr, how, scale, updates);
    updates.finish();
  }

  std::vector<double> numbers() const override { return {static_cast<double>(updates_)}; }
  void set_numbers(const std::vector<double>& numbers) override {
    if (numbers.size() != 1) core::bad_data("checkpoint: belongs to another optimiser");
    updates_ = static_cast<std::int64_t>(numbers[0]);
  }

 protected:
  /// Updates weight i, or adds its update to `updates`.
  virtual void step_of(std::size_t i, double lr, const AdamStep& how,
      const torch::Tensor& /*scale*/, Updates<AdamRule>& updates) {
    const auto& [name, w] = weights_[i];
    updates.add({options_, how, 1 - lr * decay_of(i)}, {w, moment("mean", i), moment("square", i)},
        is_memory_table(name));
  }

 private:
  std::int64_t updates_ = 0;
};

class Muon : public Adam {
 public:
  using Adam::Adam;

 private:
  void step_of(std::size_t i, double lr, const AdamStep& how, const torch::Tensor& scale,
      Updates<AdamRule>& updates) override {
    auto w = weights_[i].second;
    if (!nn::is_hidden_matrix(weights_[i].first, w))
      return Adam::step_of(i, lr, how, scale, updates);
    auto u = moment("velocity", i);
    u.mul_(options_.momentum);
    torch::Tensor ahead;
    if (w.grad().defined()) {
      ahead = w.grad() * scale.to(w.grad().scalar_type());
      u.add_(ahead);
      ahead.add_(u, options_.momentum);
    } else {
      ahead = u * options_.momentum;
    }
    constexpr double kAdamsLength = 0.2;  // approximate root mean square of AdamW's update
    const auto larger = static_cast<double>(std::max(w.size(0), w.size(1)));
    w.mul_(1 - lr * decay_of(i)).sub_(orthogonalised(ahead), lr * kAdamsLength * std::sqrt(larger));
  }
};

class Nag : public Optimiser {
 public:
  using Optimiser::Optimiser;

  void step(double lr, const torch::Tensor& scale) override {
    const torch::NoGradGuard no_grad;
    const double correct = lr_before_ > 0 ? lr / lr_before_ : lr_before_ < 0 ? 1 : lr;
    const double pull = options_.momentum * options_.momentum * correct,
                 push = (1 + options_.momentum) * lr;
    const double fade = options_.momentum * correct;
    Updates<NagRule> updates(scale);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const auto& [name, w] = weights_[i];
      updates.add({1 - lr * decay_of(i), pull, push, fade, lr}, {w, moment("velocity", i)},
          is_memory_table(name));
    }
    updates.finish();
    lr_before_ = lr;
  }

  std::vector<double> numbers() const override { return {lr_before_}; }
  void set_numbers(const std::vector<double>& numbers) override {
    if (numbers.size() != 1) core::bad_data("checkpoint: belongs to another optimiser");
    lr_before_ = numbers[0];
  }

 private:
  double lr_before_ = -1;  // -1: no step yet
};

// Returns the names of a weight's moments.
std::vector<std::string> moments_of(
    const OptimiserOptions& options, const std::string& name, const torch::Tensor& weight) {
  const bool velocity = options.optimiser == "nag" ||
                        (options.optimiser == "muon" && nn::is_hidden_matrix(name, weight));
  if (velocity) return {"velocity"};
  return {"mean", "square"};
}

}  // namespace

bool is_memory_table(const std::string& name) {
  return name.ends_with("pool.values") || name.ends_with("ngram.tables");
}

Optimiser::Optimiser(const OptimiserOptions& options, NamedWeights weights)
    : options_(options), weights_(std::move(weights)) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    for (const auto& name : moment_names(i)) tensors_[name] = torch::zeros_like(weights_[i].second);
}

std::vector<std::string> Optimiser::moment_names(std::size_t weight) const {
  const auto& [name, values] = weights_[weight];
  auto names = moments_of(options_, name, values);
  for (auto& kind : names) kind += "." + name;
  return names;
}

torch::Tensor Optimiser::moment(const std::string& kind, std::size_t weight) {
  return tensors_.at(kind + "." + weights_[weight].first);
}

double Optimiser::decay_of(std::size_t weight) const {
  const bool decays = options_.decay == "all" || weights_[weight].second.dim() >= 2;
  return decays ? options_.weight_decay : 0;
}

void Optimiser::restore(const std::function<torch::Tensor(const std::string& name)>& saved) {
  for (auto& [name, tensor] : tensors_) {
    const auto found = saved(name);
    if (found.sizes() != tensor.sizes())
      core::bad_data("checkpoint: the optimiser's {} has the wrong shape", name);
    tensor.copy_(found);
  }
}

std::unique_ptr<Optimiser> make_optimiser(
    const OptimiserOptions& options, NamedWeights weights, const NamedWeights& all) {
  if (options.optimiser == "nag") return std::make_unique<Nag>(options, std::move(weights));
  if (options.optimiser == "adam" || options.optimiser == "adamw" || options.optimiser == "radam")
    return std::make_unique<Adam>(options, std::move(weights));
  if (options.optimiser == "muon") {
    const auto& asked = all.empty() ? weights : all;
    if (std::ranges::none_of(asked,
            [](const auto& named) { return nn::is_hidden_matrix(named.first, named.second); }))
      core::bad_usage("--optimiser: muon needs matrices of layers, and none is trained; use adamw");
    return std::make_unique<Muon>(options, std::move(weights));
  }
  core::bad_usage(
      "--optimiser: '{}' is not one of adamw, muon, radam, adam, nag", options.optimiser);
}

// Partial sums of fixed blocks, the same for any number of threads.
std::vector<double> square_sums(const torch::Tensor& gradient) {
  const torch::NoGradGuard no_grad;
  if (!fusable(gradient))
    return {gradient.to(torch::kFloat32).pow(2).sum(torch::kFloat64).item<double>()};
  const auto* p = gradient.const_data_ptr<float>();
  const std::int64_t n = gradient.numel(), blocks = (n + kNormBlock - 1) / kNormBlock;
  std::vector<double> partial(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      partial[static_cast<std::size_t>(b)] =
          nn::square_sum(p + b * kNormBlock, std::min(kNormBlock, n - b * kNormBlock));
  });
  return partial;
}

torch::Tensor gradient_norm(const NamedWeights& weights) {
  const torch::NoGradGuard no_grad;
  torch::Tensor total;
  std::vector<torch::Tensor> on_device;
  double sum = 0;
  for (const auto& [name, weight] : weights) {
    if (!weight.grad().defined()) continue;
    const auto g = weight.grad().is_sparse()
                       ? nn::values_of_gradient(nn::settled(weight.grad())).contiguous()
                       : weight.grad();
    if (!nn::in_host_memory(g)) {
      on_device.push_back(g);
      continue;
    }
    if (!fusable(g)) {
      const auto square = g.to(torch::kFloat32).pow(2).sum(torch::kFloat64);
      total = total.defined() ? total + square : square;
      continue;
    }
    for (const double block : square_sums(g)) sum += block;
  }
  if (!on_device.empty()) {  // a few launches for all gradients
    const auto norms = torch::stack(at::_foreach_norm(on_device, 2)).to(torch::kFloat64);
    const auto square = norms.square().sum();
    total = total.defined() ? total + square : square;
  }
  if (!total.defined()) return torch::tensor(std::sqrt(sum), torch::kFloat64);
  return (total + sum).sqrt();
}

std::int64_t moment_numbers(const OptimiserOptions& options, const NamedWeights& weights) {
  return core::sum_of(weights, [&](const auto& own) {
    return own.second.numel() * std::ssize(moments_of(options, own.first, own.second));
  });
}

torch::Tensor orthogonalised(const torch::Tensor& matrix) {
  constexpr int kSteps = 5;
  constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315, kLeast = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);  // multiply by the smaller of the two products
  auto x = (tall ? matrix.t() : matrix) / (matrix.norm() + kLeast);
  for (int step = 0; step < kSteps; ++step) {
    const auto a = x.mm(x.t());
    x = torch::addmm(x, torch::addmm(a, a, a, kCubic, kQuintic), x, kLinear, 1);
  }
  return tall ? x.t() : x;
}

}  // namespace train
