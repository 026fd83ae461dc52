// LoRA terms: gradients compared with plain loops and with differences of the loss, and a run that
// trains them.

#include "train/lora.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "model/adapter.h"
#include "model/folder.h"
#include "nn/memory/joint_loss.h"
#include "train/validation.h"
#include "unit/model/small_models.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"
#include "unit/train/tiny.h"

namespace {

train::LoraOptions rank_two(std::vector<std::string> targets) {
  train::LoraOptions options;
  options.lora = 2, options.lora_alpha = 3;
  options.lora_targets = std::move(targets);
  return options;
}

/// A transformer of the family's layout, with non-zero terms.
struct Termed {
  std::shared_ptr<nn::Model> model;
  train::Lora lora;
  Termed(const nn::ModelOptions& options, const char* family, std::vector<std::string> targets)
      : model(random_model(options)),
        lora(model, model::family_named(family, ""), rank_two(std::move(targets))) {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, values] : lora.weights())
      torch::Tensor(values).copy_(0.3 * torch::randn_like(values));
    lora.apply();
  }
};

nn::ModelOptions neox() {
  auto options = small_gpt2();
  options.transformer.positions = "rope", options.transformer.norm = "parallel";
  return options;
}

/// The mean loss with a graph.
torch::Tensor graph_loss(nn::Model& model, const torch::Tensor& ids) {
  const auto n = ids.numel() - 1;
  const auto batch = batch_of(ids);
  const auto hidden = model.architecture->forward(batch, nullptr);
  return nn::joint_loss(hidden.output, hidden.key, batch, *model.head, {}, {}) / n;
}

}  // namespace

DOCTEST_TEST_CASE("terms have the gradients that the loss has by their numbers") {
  for (const auto& [options, family, target] : {std::tuple{small_gpt2(), "gpt2", "c_attn"},
           std::tuple{neox(), "gpt_neox", "query_key_value"},
           std::tuple{neox(), "gpt_neox", "dense_4h_to_h"}}) {
    DOCTEST_CAPTURE(target);
    Termed termed(options, family, {target});
    const auto ids = some_ids();
    graph_loss(*termed.model, ids).backward();
    // dW of a dense training.
    model::TensorMap whole;
    for (const auto& [name, weight] : termed.model->named_weights())
      if (weight.grad().defined()) whole[name] = weight.grad().clone();
    DOCTEST_CHECK(whole.size() == 2);  // the others are not trained
    termed.lora.take_gradients();
    for (const auto& [name, weight] : termed.model->named_weights())
      DOCTEST_CHECK(!weight.grad().defined());
    constexpr double kStep = 1e-2;
    const torch::NoGradGuard no_grad;
    for (const auto& [name, values] : termed.lora.weights()) {
      DOCTEST_CAPTURE(name);
      DOCTEST_REQUIRE(values.grad().defined());
      const auto flat = values.flatten();
      for (const std::int64_t i : {std::int64_t{0}, flat.numel() / 2, flat.numel() - 1}) {
        const auto loss_at = [&](double step) {
          flat[i] += step;
          termed.lora.apply();
          const double loss = loss_of(*termed.model, ids);
          flat[i] -= step;
          return loss;
        };
        const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
        DOCTEST_CHECK(values.grad().flatten()[i].item<double>() ==
                      doctest::Approx(slope).epsilon(0.02).scale(0.02));
      }
      termed.lora.apply();
    }
  }
}

DOCTEST_TEST_CASE("gradients of terms are s B^T dW and s dW A^T, added up") {
  Termed termed(small_gpt2(), "gpt2", {"c_fc"});
  const double s = 3. / 2;
  std::map<std::string, torch::Tensor> sums;
  torch::manual_seed(8);
  for (int time = 0; time < 2; ++time) {
    for (const auto& [name, weight] : termed.model->named_weights()) {
      if (!name.ends_with("mlp.c_fc.weight")) continue;
      const auto gradient = torch::randn_like(weight);
      torch::Tensor(weight).mutable_grad() = gradient;
      sums[name] = sums.count(name) ? sums[name] + gradient : gradient;
    }
    termed.lora.take_gradients();
  }
  const auto terms = termed.lora.weights();
  const model::TensorMap by_name(terms.begin(), terms.end());
  for (const auto& [name, dw] : sums) {
    const auto module = name.substr(0, name.size() - 7);
    const auto &a = by_name.at(module + ".lora_A.weight"),
               &b = by_name.at(module + ".lora_B.weight");
    double worst = 0;
    for (std::int64_t k = 0; k < 2; ++k) {
      for (std::int64_t i = 0; i < a.size(1); ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < b.size(0); ++o)
          sum += s * b[o][k].item<double>() * dw[o][i].item<double>();
        worst = std::max(worst, std::abs(sum - a.grad()[k][i].item<double>()));
      }
      for (std::int64_t o = 0; o < b.size(0); ++o) {
        double sum = 0;
        for (std::int64_t i = 0; i < a.size(1); ++i)
          sum += s * dw[o][i].item<double>() * a[k][i].item<double>();
        worst = std::max(worst, std::abs(sum - b.grad()[o][k].item<double>()));
      }
    }
    DOCTEST_CHECK(worst < 1e-4);
  }
}

DOCTEST_TEST_CASE("all-linear takes each linear layer of a Mamba, and not its convolution") {
  for (const auto& [family, expected] :
      {std::pair{"mamba", std::set<std::string>{"in_proj", "x_proj", "dt_proj", "out_proj"}},
          std::pair{"mamba2", std::set<std::string>{"in_proj", "out_proj"}}}) {
    DOCTEST_CAPTURE(std::string(family));
    auto options = small_gpt2();
    options.arch = family;
    std::set<std::string> found;
    for (const auto& [name, values] : Termed(options, family, {"all-linear"}).lora.weights()) {
      const auto module = name.substr(0, name.rfind(".lora_"));
      found.insert(module.substr(module.rfind('.') + 1));
    }
    DOCTEST_CHECK(found == expected);
    DOCTEST_CHECK(thrown([&, of = family] { Termed(options, of, {"conv1d"}); }).text ==
                  "--lora-targets: conv1d is not a linear layer of the model");
  }
}

DOCTEST_TEST_CASE(
    "a run of --lora learns, resumes to the same bytes, and is the model it trained") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  tiny::train(folder / "base", job);
  job.from = folder / "base";
  job.recipe.lora.lora = 4;
  job.recipe.steps = 40;
  job.valid = folder / "text";
  DOCTEST_CHECK(tiny::train(folder / "a", job) == train::Outcome::finished);
  DOCTEST_CHECK(tiny::train(folder / "a", job) == train::Outcome::was_finished);
  DOCTEST_CHECK(tiny::train(folder / "b", job, 20) == train::Outcome::stopped);
  {
    // An unfinished run is its base with the best terms so far, or with those of a checkpoint.
    auto run = train::prepare(job);
    run.model = model::load(folder / "b").model;
    const auto seen = tiny::losses(folder / "b", "valid_loss");
    DOCTEST_CHECK(train::validate(run).totals.loss() ==
                  doctest::Approx(*std::min_element(seen.begin(), seen.end())).epsilon(1e-5));
    const auto base = model::load(folder / "base");
    const auto step = model::load(folder / "b/step-20");
    DOCTEST_CHECK(step.folder == folder / "b/step-20");
    DOCTEST_CHECK_FALSE((step.fingerprint == base.fingerprint));
    const auto why = [&] { return thrown([&] { model::load(folder / "b"); }).text; };
    std::filesystem::rename(folder / "base", folder / "elsewhere");
    DOCTEST_CHECK(why().find("which does not exist; run this in the folder where train ran") !=
                  std::string::npos);
    auto other = job;
    other.from = "", other.recipe.lora = {}, other.recipe.steps = 1;
    tiny::train(folder / "base", other);
    DOCTEST_CHECK(why().find("which is a different model now") != std::string::npos);
    std::filesystem::remove_all(folder / "base");
    std::filesystem::rename(folder / "elsewhere", folder / "base");
  }
  DOCTEST_CHECK(tiny::train(folder / "b", job) == train::Outcome::finished);
  DOCTEST_CHECK(tiny::files(folder / "a") == tiny::files(folder / "b"));
  // The folder has no weights of a model, but an adapter of both layers' four matrices.
  const auto files = tiny::files(folder / "a");
  DOCTEST_CHECK(files.count("model.safetensors") == 0);
  const auto config = core::parse_json(files.at("adapter_config.json"), "");
  DOCTEST_CHECK(config["r"] == 4);
  DOCTEST_CHECK(config["lora_alpha"] == 8);
  DOCTEST_CHECK(config["fan_in_fan_out"] == true);
  DOCTEST_CHECK(config["target_modules"] == core::Json({"c_attn", "c_fc", "c_proj"}));
  DOCTEST_CHECK(config["base_model_name_or_path"] == folder / "base");
  const auto loaded = model::load(folder / "base", torch::kCPU, torch::kFloat32, folder / "a");
  // The terms of the best validation.
  auto run = train::prepare(job);
  run.model = loaded.model;
  const auto valid = tiny::losses(folder / "a", "valid_loss");
  DOCTEST_CHECK(train::validate(run).totals.loss() ==
                doctest::Approx(*std::min_element(valid.begin(), valid.end())).epsilon(1e-5));
  run.model = model::load(folder / "base").model;
  DOCTEST_CHECK(train::validate(run).totals.loss() > valid.back() + 0.02);
  const auto terms = model::read_safetensors(folder / "a/adapter_model.safetensors");
  DOCTEST_CHECK(terms.size() == 16);
}

DOCTEST_TEST_CASE("--lora: what cannot be is refused") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.steps = 1;
  tiny::train(folder / "base", job);
  job.recipe.lora.lora = 2;
  const auto refused = [&](const train::Job& of) {
    return thrown([&] { train::prepare(of); }).text;
  };
  DOCTEST_CHECK(refused(job).find("--lora: --from MODEL is missing; give the model") == 0);
  job.from = folder / "base";
  auto other = job;
  other.recipe.objective.memory = "local";
  DOCTEST_CHECK(refused(other).find("cannot be combined with --memory") != std::string::npos);
  other = job, other.recipe.average_checkpoints = 2;
  DOCTEST_CHECK(
      refused(other).find("cannot be combined with --average-checkpoints") != std::string::npos);
  other = job, other.recipe.lora.lora_targets = {"q_proj"};
  DOCTEST_CHECK(refused(other) == "--lora-targets: q_proj is not a linear layer of the model");
  other = job, other.recipe.lora.lora_targets = {"c_attn", "wte"};
  DOCTEST_CHECK(refused(other) == "--lora-targets: wte is not a linear layer of the model");
  other = job, other.adapter = folder / "base";
  DOCTEST_CHECK(!refused(other).empty());
  // The learning rate for terms that begin at 0.
  other = job, other.recipe.optimiser.lr = 0;
  const auto run = train::prepare(other);
  DOCTEST_CHECK(run.recipe.optimiser.lr == 2e-4);
  DOCTEST_CHECK(run.note == "--from: rate 2e-4; --lr sets another");
}
