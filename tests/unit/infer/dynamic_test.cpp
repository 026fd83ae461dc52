// Dynamic evaluation: gradients against differences of the loss, steps against a plain loop, and
// what a later token may not change.
#include "infer/windows/dynamic.h"

#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <cmath>

#include "infer/score/scorer.h"
#include "nn/base/architecture.h"
#include "nn/base/torch.h"
#include "nn/memory/joint_loss.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kDynamicTypes = 11;

struct OneWindow {
  tiny::Shard shard{tiny::text_of({20}, kDynamicTypes, 3)};
  nn::Batch batch;
  OneWindow() {
    const auto windows = tiny::windows_of(16, 16);
    const auto& data = shard.data();
    auto span = *infer::Windows(windows, data.documents(), data.size()).next();
    span.first_scored = 5;
    batch = infer::batch_of({span}, data, windows, kDynamicTypes);
  }
  void teach(infer::DynamicWeights& weights, nn::Model& model) const {
    weights.learn(batch, [&] { return model.architecture->forward(batch, nullptr); });
  }
  // The mean loss of the targets from the sixth on, from whole rows of the softmax.
  double loss(nn::Model& model) const {
    const Tensor f = model.architecture->forward(batch, nullptr).output[0].slice(0, 5);
    const Tensor targets = batch.targets[0].slice(0, 5).unsqueeze(1);
    return -model.head->log_probs(f).gather(1, targets).mean().item<double>();
  }
  // Its gradient in some weights, by torch.
  std::vector<Tensor> gradients(nn::Model& model, const std::vector<Tensor>& weights) const {
    const auto hidden = model.architecture->forward(batch, nullptr);
    const Tensor loss = nn::joint_loss(hidden.output, hidden.key, batch, *model.head, {}, {});
    return torch::autograd::grad({loss / (batch.steps() - 5)}, weights);
  }
};

std::vector<Tensor> copies(const std::vector<Tensor>& weights) {
  std::vector<Tensor> all;
  for (const auto& weight : weights) all.push_back(weight.detach().clone());
  return all;
}

// Log-probabilities of a text's tokens; the weights follow it.
std::vector<double> followed(nn::Model& model, const tiny::Text& text,
    const infer::DynamicOptions& options, bool carried = false) {
  auto windows = tiny::windows_of(carried ? 8 : 16, 8, carried);
  windows.batch_tokens = 1;
  windows.by_document = true;
  windows.dynamic = options;
  std::vector<double> all;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& block) {
    for (std::int64_t i = 0; i < block.targets.size(0); ++i)
      all.push_back(block.log_prob[i].item<double>());
  };
  const auto plan = infer::plan_memory(tiny::memory_of("none"), windows, model);
  infer::score(model, tiny::Shard(text).data(), windows, plan, torch::kCPU, watch);
  return all;
}

// One weight of a plain loop.
struct PlainWeight {
  Tensor at, first = at.clone(), mean = torch::zeros_like(at), square = torch::zeros_like(at);
  void step(const Tensor& gradient, int t, const infer::DynamicOptions& o) {
    mean = 0.9 * mean + 0.1 * gradient;
    square = 0.999 * square + 0.001 * gradient * gradient;
    const Tensor adam =
        mean / (1 - std::pow(0.9, t)) / ((square / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
    at = at - o.rate * (o.optimiser == "adam" ? adam : gradient);
    const Tensor root = square.sqrt();
    at = at + torch::minimum(o.decay * root / (root.mean() + 1e-30), torch::ones_like(at)) *
                  (first - at);
  }
};

std::vector<double> part(const std::vector<double>& all, std::ptrdiff_t begin, std::ptrdiff_t end) {
  return {all.begin() + begin, all.begin() + end};
}

}  // namespace

DOCTEST_TEST_CASE("a step is along the slope of the window's loss, for every architecture") {
  const OneWindow of;
  for (const auto& arch : nn::architecture_names()) {
    if (nn::arch_facts(arch).reads_source) continue;
    auto model = tiny::smooth_model_of(arch, "learned", kDynamicTypes, torch::kFloat64);
    const auto weights = model.parameters();
    for (const std::string which : {"all", "norms"}) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(which);
      const auto before = copies(weights);
      constexpr double kRate = 1e-2, kStep = 1e-7;
      auto moves = before;
      double slope = 0;
      {
        infer::DynamicWeights dynamic(
            model, {.on = true, .rate = kRate, .weights = which, .optimiser = "sgd"});
        of.teach(dynamic, model);
        torch::manual_seed(2);
        for (std::size_t i = 0; i < weights.size(); ++i) {
          const bool trained = which == "all" || weights[i].dim() <= 1;
          DOCTEST_CHECK((trained || torch::equal(weights[i], before[i])));
          moves[i] = torch::randn_like(before[i]) * trained;
          slope += (moves[i] * (before[i] - weights[i].detach())).sum().item<double>() / kRate;
        }
      }
      const auto moved = [&](double by) {
        for (std::size_t i = 0; i < moves.size(); ++i) {
          const torch::NoGradGuard no_gradient;
          Tensor(weights[i]).add_(moves[i], by);
        }
        return of.loss(model);
      };
      const double more = moved(kStep), less = moved(-2 * kStep);
      DOCTEST_CHECK((more - less) / (2 * kStep) == doctest::Approx(slope).epsilon(1e-5));
    }
  }
}

DOCTEST_TEST_CASE("steps are those of SGD and Adam, on weights and on low-rank terms, with decay") {
  const OneWindow of;
  for (const std::string optimiser : {"sgd", "adam"})
    for (const bool lora : {false, true}) {
      DOCTEST_CAPTURE(optimiser);
      DOCTEST_CAPTURE(lora);
      const infer::DynamicOptions options{.on = true,
          .rate = 0.01,
          .decay = 0.4,
          .weights = lora ? "lora" : "all",
          .optimiser = optimiser};
      auto model = tiny::model_of("transformer", "learned", kDynamicTypes, torch::kFloat64);
      std::vector<Tensor> weights;
      for (const auto& [name, weight] : model.named_weights())
        if (!lora || (weight.dim() == 2 && name.find("c_") != std::string::npos))
          weights.push_back(weight);
      DOCTEST_CHECK(weights.size() == (lora ? 8 : model.parameters().size()));
      const auto every = copies(model.parameters());
      {
        infer::DynamicWeights dynamic(model, options);
        auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
        std::vector<PlainWeight> whole, b, a;
        for (const auto& weight : weights) {
          whole.push_back({weight.detach().clone()});
          if (!lora) continue;
          const auto width = weight.size(1);
          b.push_back({torch::zeros({weight.size(0), 8}, torch::kFloat64)});
          a.push_back({torch::randn({8, width}, generator).to(torch::kFloat64) /
                       std::sqrt(static_cast<double>(width))});
        }
        for (int t = 1; t <= 3; ++t) {
          const auto gradients = of.gradients(model, weights);
          of.teach(dynamic, model);
          for (std::size_t i = 0; i < whole.size(); ++i) {
            if (lora) {
              const Tensor of_b = gradients[i].mm(a[i].at.t()), of_a = b[i].at.t().mm(gradients[i]);
              b[i].step(of_b, t, options), a[i].step(of_a, t, options);
              whole[i].at = whole[i].first + b[i].at.mm(a[i].at);
            } else {
              whole[i].step(gradients[i], t, options);
            }
            DOCTEST_CHECK(torch::allclose(weights[i], whole[i].at, 1e-6, 1e-7));
          }
        }
      }
      for (std::size_t i = 0; i < every.size(); ++i)
        DOCTEST_CHECK(torch::equal(model.parameters()[i], every[i]));  // as they were
    }
}

DOCTEST_TEST_CASE("dynamic evaluation: rate 0 changes nothing, and the future changes no past") {
  for (const auto& [arch, carried, which] :
      {std::tuple{"transformer", false, "all"}, {"transformer", false, "lora"},
          {"transformer-xl", false, "norms"}, {"lstm", true, "all"}, {"gla", true, "lora"}}) {
    DOCTEST_CAPTURE(arch);
    auto model = tiny::model_of(arch, "learned", kDynamicTypes, torch::kFloat64);
    auto text = tiny::text_of({120, 60}, kDynamicTypes, 5);
    const infer::DynamicOptions off, still{.on = true, .rate = 0, .weights = which},
        on{.on = true, .rate = 0.02, .weights = which, .optimiser = "adam"};
    const auto go = [&, carried = carried](
                        const auto& options) { return followed(model, text, options, carried); };
    const auto plain = go(off), learned = go(on);
    DOCTEST_CHECK(plain == go(still));
    DOCTEST_CHECK(plain == go(off));
    DOCTEST_CHECK(learned == go(on));
    // The first window of each document has the weights of the file, the second has not.
    for (const std::ptrdiff_t begin : {0, 119}) {
      const std::ptrdiff_t window = carried ? 8 : 16;
      DOCTEST_CHECK(part(plain, begin, begin + window) == part(learned, begin, begin + window));
      DOCTEST_CHECK(
          part(plain, begin + window, begin + 24) != part(learned, begin + window, begin + 24));
    }
    for (const std::size_t changed : {30, 80}) {
      auto& token = text.documents[0][changed];
      token = (token + 1) % kDynamicTypes;
      const auto other = go(on);
      const auto at = static_cast<std::ptrdiff_t>(changed) - 1;  // the first token is not scored
      DOCTEST_CHECK(part(learned, 0, at) == part(other, 0, at));
      DOCTEST_CHECK(part(learned, at, 119) != part(other, at, 119));
      DOCTEST_CHECK(part(learned, 119, 178) == part(other, 119, 178));  // the other document
      token = (token + kDynamicTypes - 1) % kDynamicTypes;
    }
  }
}

DOCTEST_TEST_CASE("dynamic evaluation refuses by name what it cannot follow") {
  const auto refused = [](bool unusual, const char* dtype) {
    return thrown([&] { infer::DynamicOptions{.on = true}.check(unusual, dtype); });
  };
  DOCTEST_CHECK(refused(false, "int8").names("--dynamic-evaluation"));
  DOCTEST_CHECK(refused(false, "bfloat16").names("--dtype but float32 and float64"));
  DOCTEST_CHECK(refused(true, "float32").names("sentence pairs, --retrieve"));
  infer::DynamicOptions{}.check(true, "int8");
  infer::DynamicOptions{.on = true}.check(false, "float64");
}
