// Initial values, names and sizes of models.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/json.h"
#include "nn/arch/model.h"
#include "nn/base/architecture.h"
#include "properties.h"

namespace {

nn::ModelOptions medium() {
  nn::ModelOptions options;
  options.shape.layers = 8;
  options.shape.d_model = 128;
  options.shape.heads = 4;
  return options;
}

torch::Tensor weight_of(const nn::Model& model, const std::string& name) {
  for (const auto& [key, weight] : model.named_weights())
    if (key == name) return weight;
  DOCTEST_FAIL("no weight " << name);
  return {};
}

void check_normal(const nn::Model& model, const std::string& name, double deviation) {
  DOCTEST_CAPTURE(name);
  const auto weight = weight_of(model, name);
  DOCTEST_CHECK(std::abs(weight.std().item<double>() / deviation - 1) < 0.03);
  DOCTEST_CHECK(weight.abs().max().item<double>() > 3 * deviation);  // not uniform
}

void check_uniform(const nn::Model& model, const std::string& name, double bound) {
  DOCTEST_CAPTURE(name);
  const auto weight = weight_of(model, name);
  DOCTEST_CHECK(weight.abs().max().item<double>() <= bound);
  DOCTEST_CHECK(std::abs(weight.std().item<double>() * std::sqrt(3.0) / bound - 1) < 0.03);
}

void check_constant(const nn::Model& model, const std::string& name, double value) {
  DOCTEST_CAPTURE(name);
  DOCTEST_CHECK((weight_of(model, name) == value).all().item<bool>());
}

}  // namespace

DOCTEST_TEST_CASE("first values of GPT-2") {
  torch::manual_seed(1);
  auto options = medium();
  options.shape.init = "gpt2";
  const nn::Model model(options, 500);
  for (const std::string name :
      {"wte.weight", "wpe.weight", "h.3.attn.c_attn.weight", "h.3.mlp.c_fc.weight"})
    check_normal(model, "transformer." + name, .02);
  for (const std::string name : {"h.3.attn.c_proj.weight", "h.7.mlp.c_proj.weight"})
    check_normal(model, "transformer." + name, .02 / 4);
  for (const std::string name :
      {"h.0.ln_1.bias", "h.3.attn.c_attn.bias", "h.3.mlp.c_proj.bias", "ln_f.bias"})
    check_constant(model, "transformer." + name, 0);
  for (const std::string name : {"h.0.ln_1.weight", "h.7.ln_2.weight", "ln_f.weight"})
    check_constant(model, "transformer." + name, 1);
}

DOCTEST_TEST_CASE("first values of fairseq") {
  torch::manual_seed(1);
  auto options = medium();
  options.shape.init = "fairseq";
  options.vocabulary.cutoffs = {200, 400};
  options.vocabulary.factor = 2;
  const nn::Model model(options, 900);
  check_normal(model, "transformer.wte.table_0", std::pow(128, -.5));
  check_normal(model, "transformer.wte.table_1", std::pow(64, -.5));
  check_normal(model, "transformer.wte.table_2", std::pow(32, -.5));
  check_uniform(model, "transformer.wte.projection_1", std::sqrt(6.0 / (128 + 64)));
  check_uniform(model, "transformer.h.2.attn.c_attn.weight", std::sqrt(6.0 / (4 * 128)));
  check_uniform(model, "transformer.h.2.attn.c_proj.weight", std::sqrt(6.0 / (2 * 128)));
  check_uniform(model, "transformer.h.2.mlp.c_fc.weight", std::sqrt(6.0 / (5 * 128)));
  check_constant(model, "transformer.h.2.mlp.c_fc.bias", 0);
  check_constant(model, "transformer.h.2.ln_2.weight", 1);
}

DOCTEST_TEST_CASE("first values of an LSTM's cells, and the same seed gives the same model") {
  auto options = medium();
  options.arch = "lstm";
  options.lstm.d_recurrent = 64;
  torch::manual_seed(1);
  const nn::Model model(options, 300);
  check_uniform(model, "lstm.weight_ih_l0", 1.0 / 8);
  check_uniform(model, "lstm.weight_hh_l7", 1.0 / 8);
  torch::manual_seed(1);
  const nn::Model again(options, 300);
  for (std::size_t i = 0; i < model.named_weights().size(); ++i)
    DOCTEST_CHECK(torch::equal(model.named_weights()[i].second, again.named_weights()[i].second));
}

DOCTEST_TEST_CASE("weights have GPT-2's names, a tied one once") {
  auto options = properties::small_options();
  options.shape.layers = 1;
  const auto names_of = [&] {
    std::vector<std::string> names;
    for (const auto& [name, weight] : nn::Model(options, 13).named_weights()) names.push_back(name);
    return names;
  };
  const std::vector<std::string> expected = {"transformer.wte.weight", "transformer.wpe.weight",
      "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
      "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
      "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
      "transformer.h.0.ln_2.weight", "transformer.h.0.ln_2.bias", "transformer.h.0.mlp.c_fc.weight",
      "transformer.h.0.mlp.c_fc.bias", "transformer.h.0.mlp.c_proj.weight",
      "transformer.h.0.mlp.c_proj.bias", "transformer.ln_f.weight", "transformer.ln_f.bias"};
  DOCTEST_CHECK(names_of() == expected);
  options.vocabulary.tied = false;
  auto untied = expected;
  untied.push_back("lm_head.weight");
  DOCTEST_CHECK(names_of() == untied);
  options.vocabulary.tied = true;
  options.vocabulary.cutoffs = {4, 8};
  const auto adaptive = names_of();
  DOCTEST_CHECK(std::set<std::string>(adaptive.begin(), adaptive.end()).size() == adaptive.size());
  DOCTEST_CHECK(std::count(adaptive.begin(), adaptive.end(), "lm_head.slots") == 1);
  DOCTEST_CHECK(std::count(adaptive.begin(), adaptive.end(), "lm_head.table_1") == 0);
}

DOCTEST_TEST_CASE("a model's size is known without its memory") {
  for (const auto& arch : nn::architecture_names()) {
    auto options = properties::small_options(arch);
    DOCTEST_CHECK(nn::parameter_count(options, 13) == nn::Model(options, 13).parameter_count());
    options.vocabulary.cutoffs = {4, 8};
    DOCTEST_CHECK(nn::parameter_count(options, 13) == nn::Model(options, 13).parameter_count());
  }
  auto huge = medium();
  huge.shape.d_model = 16384;
  huge.shape.layers = 100;
  DOCTEST_CHECK(nn::parameter_count(huge, 100000) > 300'000'000'000);
  const nn::Model after(medium(), 50);  // and later models have their own
  DOCTEST_CHECK(after.named_weights()[0].second.is_cpu());
}

DOCTEST_TEST_CASE("options survive the way through JSON") {
  auto options = medium();
  options.transformer.positions = "alibi";
  options.vocabulary.cutoffs = {5, 9};
  nn::ModelOptions back;
  core::fields_from_json(core::list_fields(back), core::to_json(options), "config.json");
  DOCTEST_CHECK(core::to_json(back) == core::to_json(options));
  DOCTEST_CHECK(back.vocabulary.cutoffs == options.vocabulary.cutoffs);
}
