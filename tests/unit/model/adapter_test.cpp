// LoRA adapters: weights compared with a plain loop over the tensors of the files, the rules of
// adapter_config.json, and refusals.

#include "model/adapter.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/file_text.h"
#include "folder_of_test.h"
#include "model/export_model.h"
#include "model/folder.h"
#include "model/tensor_files.h"
#include "nll_of.h"
#include "small_models.h"

namespace {

using core::Code;
namespace fs = std::filesystem;

const std::string kPrefix = "base_model.model.";

/// A handmade adapter folder.
struct Made {
  core::Json config = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 6}};
  std::map<std::string, torch::Tensor> tensors;

  Made(std::vector<std::string> targets) { config["target_modules"] = std::move(targets); }
  void term(const std::string& module, std::int64_t out, std::int64_t in, std::int64_t rank = 2) {
    tensors[kPrefix + module + ".lora_A.weight"] = torch::randn({rank, in});
    tensors[kPrefix + module + ".lora_B.weight"] = torch::randn({out, rank});
  }
  void write(const std::string& folder) const {
    fs::create_directories(folder);
    overwrite(folder + "/adapter_config.json", core::dump(config));
    core::Output out(folder + "/adapter_model.safetensors");
    model::write_safetensors(out, {tensors.begin(), tensors.end()});
    out.commit();
  }
};

/// Returns W + s B A for a matrix (out, in), or for its transpose, one product at a time.
torch::Tensor plain_sum(const torch::Tensor& w, const torch::Tensor& a, const torch::Tensor& b,
    double scale, bool transposed) {
  auto sum = w.to(torch::kFloat64).clone();
  const auto x = a.to(torch::kFloat64), y = b.to(torch::kFloat64);
  for (std::int64_t o = 0; o < y.size(0); ++o)
    for (std::int64_t i = 0; i < x.size(1); ++i) {
      double term = 0;
      for (std::int64_t k = 0; k < x.size(0); ++k)
        term += y[o][k].item<double>() * x[k][i].item<double>();
      auto at = transposed ? sum[i][o] : sum[o][i];
      at += scale * term;
    }
  return sum;
}

/// Compares every tensor of the model with the adapter, in its family's form, with the base's
/// tensor.
void check_sums(const std::string& base, const Made& made, double scale, bool transposed = false) {
  const TemporaryFolder folder;
  made.write(folder / "adapter");
  const auto plain = model::load(base);
  const auto loaded = model::load(base, torch::kCPU, torch::kFloat32, folder / "adapter");
  DOCTEST_CHECK(!(loaded.fingerprint == plain.fingerprint));
  DOCTEST_CHECK(loaded.adapter == folder / "adapter");
  model::merge_model(loaded, {}, folder / "merged");
  model::export_model(plain, {.family = "", .dtype = "float32"}, folder / "base");
  const model::TensorFiles before(folder / "base"), after(folder / "merged");
  std::size_t changed = 0;
  for (const auto& name : before.tensors()) {
    DOCTEST_CAPTURE(name);
    const auto module = kPrefix + name.substr(0, name.rfind('.'));
    const auto a = made.tensors.find(module + ".lora_A.weight");
    const auto b = made.tensors.find(module + ".lora_B.weight");
    const auto now = after.read(name);
    const auto type = now.scalar_type();
    if (a == made.tensors.end() || !name.ends_with(".weight")) {
      DOCTEST_CHECK(now.equal(before.read(name).to(type)));
      continue;
    }
    ++changed;
    const auto expected = plain_sum(before.read(name), a->second, b->second, scale, transposed);
    const double near = type == torch::kFloat32 ? 1e-5 : expected.abs().max().item<double>() / 256;
    DOCTEST_CHECK((now.to(torch::kFloat64) - expected).abs().max().item<double>() < near);
  }
  DOCTEST_CHECK(changed == made.tensors.size() / 2);
}

/// Adds terms for each matrix (out, in) of a folder whose name has this end.
void add_terms(Made& made, const std::string& base, const std::string& end, bool transposed = false,
    std::int64_t rank = 2) {
  const model::TensorFiles files(base);
  for (const auto& name : files.tensors()) {
    if (!name.ends_with(end + ".weight")) continue;
    const auto shape = files.entry(name).shape;
    made.term(name.substr(0, name.size() - 7), shape[transposed ? 1 : 0], shape[transposed ? 0 : 1],
        rank);
  }
}

}  // namespace

DOCTEST_TEST_CASE("a model with an adapter has W + s B A, of each family's layout") {
  torch::manual_seed(3);
  {
    Made made({"q_proj", "v_proj", "down_proj"});
    for (const char* end : {"q_proj", "v_proj", "down_proj"})
      add_terms(made, kGoldenFamilies + "llama", end);
    check_sums(kGoldenFamilies + "llama", made, 3);
  }
  {
    // The file interleaves queries, keys and values by head.
    Made made({"query_key_value"});
    add_terms(made, kGoldenFamilies + "gpt_neox", "query_key_value");
    check_sums(kGoldenFamilies + "gpt_neox", made, 3);
  }
  {
    // (in, out) in the file.
    const TemporaryFolder folder;
    model::save(folder / "m", *random_model(small_gpt2()), {}, "");
    Made made({"c_attn", "c_proj"});
    made.config["fan_in_fan_out"] = true, made.config["use_rslora"] = true;
    add_terms(made, folder / "m", "c_attn", true);
    add_terms(made, folder / "m", "c_proj", true);
    check_sums(folder / "m", made, 6 / std::sqrt(2.), true);
  }
  for (const auto& base : {kGoldenFamilies + "mamba", kGoldenFamilies + "mamba2"}) {
    Made made({"in_proj", "out_proj"});
    for (const char* end : {"in_proj", "out_proj"}) add_terms(made, base, end);
    check_sums(base, made, 3);
    // A convolution is no linear layer.
    if (base.ends_with("mamba"))
      for (const char* end : {"x_proj", "dt_proj"}) add_terms(made, base, end);
    made.config["target_modules"] = "all-linear";
    check_sums(base, made, 3);
  }
}

DOCTEST_TEST_CASE("an embedding's term is one row a token, and modules_to_save take a place") {
  const TemporaryFolder folder;
  auto options = model::load(kGoldenFamilies + "llama").model->options;
  options.vocabulary.tied = false;
  model::save(folder / "m", *random_model(options), {{"family", "llama"}}, "");
  const auto before = model::load(folder / "m");
  const auto d = options.shape.d_model;
  Made made({"embed_tokens"});
  made.config["modules_to_save"] = {"lm_head"};
  const auto a = torch::randn({2, 64}), b = torch::randn({d, 2}), head = torch::randn({64, d});
  made.tensors = {{kPrefix + "model.embed_tokens.lora_embedding_A", a},
      {kPrefix + "model.embed_tokens.lora_embedding_B", b}, {kPrefix + "lm_head.weight", head}};
  made.write(folder / "a");
  const auto after = model::load(folder / "m", torch::kCPU, torch::kFloat32, folder / "a");
  const auto weights = [](const model::Loaded& loaded) {
    const auto named = loaded.model->named_weights();
    return model::TensorMap{named.begin(), named.end()};
  };
  const auto was = weights(before), is = weights(after);
  const auto expected = plain_sum(was.at("transformer.wte.weight"), a, b, 3, true);
  DOCTEST_CHECK((is.at("transformer.wte.weight") - expected).abs().max().item<double>() < 1e-5);
  DOCTEST_CHECK(is.at("lm_head.weight").equal(head));
}

// tests/golden/peft_tied.py wrote these adapters.
DOCTEST_TEST_CASE("an adapter of a shared embedding or head has peft's losses, merged too") {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("tests/golden/peft/tied")) {
    const auto adapter = entry.path().string();
    DOCTEST_CAPTURE(adapter);
    const auto path = adapter + "/nll.json";
    const auto base =
        kGoldenFamilies + core::parse_json(core::read_text(path), path)["model"].get<std::string>();
    const auto expected = golden_nll(path);
    const auto loaded = model::load(base, torch::kCPU, torch::kFloat32, adapter);
    DOCTEST_CHECK(nll_gap(*loaded.model, expected) < 1e-5);
    const TemporaryFolder folder;
    model::export_model(loaded, {.family = "", .dtype = "float32"}, folder / "merged");
    const auto merged = model::load(folder / "merged");
    DOCTEST_CHECK(merged.fingerprint == loaded.fingerprint);
    DOCTEST_CHECK(nll_gap(*merged.model, expected) < 1e-5);
    ++count;
  }
  DOCTEST_CHECK(count == 19);
}

DOCTEST_TEST_CASE("a shared head's adapter leaves the fingerprint of the model's own weights") {
  const TemporaryFolder folder;
  Made made({"lm_head"});
  made.term("lm_head", 64, 16);
  made.write(folder / "a");
  for (const char* arch : {"transformer", "mamba", "gla", "lstm"}) {
    DOCTEST_CAPTURE(std::string(arch));
    auto options = small_gpt2();
    options.arch = arch;
    const std::string base = folder / arch;
    model::save(base, *random_model(options), {}, "");  // records its fingerprint
    const auto load = [&](torch::Dtype dtype) {
      return model::load(base, torch::kCPU, dtype, folder / "a");
    };
    DOCTEST_CHECK(!load(torch::kFloat32).model->options.vocabulary.tied);
    DOCTEST_CHECK(load(torch::kBFloat16).fingerprint == load(torch::kFloat32).fingerprint);
  }
}

DOCTEST_TEST_CASE("adapter_config.json says which modules have a term, of which rank and scale") {
  const auto rules = [](core::Json more) {
    core::Json config = {{"r", 4}, {"lora_alpha", 8}, {"target_modules", {"q_proj", "v_proj"}}};
    if (!more.is_null()) config.update(more);
    return model::AdapterRules(core::dump(config), "adapter_config.json");
  };
  const std::string q = "model.layers.3.self_attn.q_proj", down = "model.layers.3.mlp.down_proj";
  DOCTEST_CHECK(rules({}).targets(q, true));
  DOCTEST_CHECK(!rules({}).targets("model.layers.3.self_attn.xq_proj", true));
  DOCTEST_CHECK(!rules({}).targets(down, true));
  const auto all = rules({{"target_modules", "all-linear"}});
  DOCTEST_CHECK(all.targets(down, true));
  DOCTEST_CHECK(!all.targets("model.embed_tokens", false));
  const auto pattern = rules({{"target_modules", R"(.*\.[0-3]\.mlp\..*)"}});
  DOCTEST_CHECK(pattern.targets(down, true));
  DOCTEST_CHECK(!pattern.targets("model.layers.4.mlp.down_proj", true));
  DOCTEST_CHECK(!rules({{"target_modules", "mlp"}}).targets(down, true));  // the whole name
  DOCTEST_CHECK(!rules({{"exclude_modules", {"q_proj"}}}).targets(q, true));
  DOCTEST_CHECK(!rules({{"layers_to_transform", {1, 2}}}).targets(q, true));
  DOCTEST_CHECK(rules({{"layers_to_transform", 3}, {"layers_pattern", "layers"}}).targets(q, true));
  DOCTEST_CHECK(!rules({{"layers_to_transform", 3}, {"layers_pattern", "h"}}).targets(q, true));
  DOCTEST_CHECK(!rules({{"modules_to_save", {"q_proj"}}}).targets(q, true));
  DOCTEST_CHECK(rules({}).scale(q) == 2);
  DOCTEST_CHECK(rules({{"use_rslora", true}}).scale(q) == 4);
  const auto own = rules({{"rank_pattern", {{R"(layers\.3\..*q_proj)", 16}, {"q_proj", 2}}},
      {"alpha_pattern", {{"v_proj", 12}}}});
  DOCTEST_CHECK(own.rank(q) == 16);
  DOCTEST_CHECK(own.scale(q) == 0.5);
  DOCTEST_CHECK(own.rank("model.layers.2.self_attn.q_proj") == 2);
  DOCTEST_CHECK(own.scale("model.layers.2.self_attn.v_proj") == 3);
}

// tests/golden/peft_rules.py wrote these lines.
DOCTEST_TEST_CASE("patterns of adapter_config.json have the meaning that they have in peft") {
  const std::string path = "tests/golden/peft/rules.jsonl";
  std::istringstream lines(core::read_text(path));
  std::string line;
  std::getline(lines, line);
  const auto modules = core::parse_json(line, path)["modules"].get<std::vector<std::string>>();
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    const auto json = core::parse_json(line, path);
    const auto config = json["config"].get<std::string>();
    const model::AdapterRules rules(config, "config");
    for (std::size_t i = 0; i < modules.size(); ++i) {
      DOCTEST_CAPTURE(config);
      DOCTEST_CAPTURE(modules[i]);
      const auto& term = json["terms"][i];
      DOCTEST_REQUIRE(rules.targets(modules[i], true) == !term.is_null());
      if (term.is_null()) continue;
      DOCTEST_REQUIRE(rules.rank(modules[i]) == term[0].get<std::int64_t>());
      DOCTEST_REQUIRE(rules.scale(modules[i]) == term[1].get<double>() / term[0].get<double>());
    }
  }
  DOCTEST_CHECK(count > 100);
}

DOCTEST_TEST_CASE("an adapter's configuration may list many names, and few regular expressions") {
  const auto many = [](int count, const std::string& start, const std::string& value) {
    std::string list;
    for (int i = 0; i < count; ++i)
      list += fmt::format("{}\"{}{}\"{}", i > 0 ? "," : "", start, i, value);
    return list;
  };
  const std::string last = R"("model.layers.7.self_attn.q_proj")";
  const model::AdapterRules names(
      fmt::format(R"({{"r": 4, "lora_alpha": 8, "target_modules": [{0}, {2}],
                      "rank_pattern": {{{1}, {2}: 16}}, "alpha_pattern": {{{1}, {2}: 32}}}})",
          many(40000, "model.layers.1.self_attn.q_proj", ""),
          many(40000, "model.layers.1.self_attn.q_proj", ":2"), last),
      "a.json");
  for (int i = 0; i < 300; ++i) {
    const auto module = fmt::format("model.layers.{}.self_attn.q_proj", i);
    DOCTEST_REQUIRE(names.targets(module, true) == (i == 7));
    DOCTEST_REQUIRE(names.rank(module) == (i == 7 ? 16 : 4));
    DOCTEST_REQUIRE(names.scale(module) == 2);
  }
  for (const std::string& list : {"\"rank_pattern\": {" + many(1001, "x+", ":2") + "}",
           "\"alpha_pattern\": {" + many(600, "x+", ":2") + "}, \"rank_pattern\": {" +
               many(600, "x+", ":2") + "}",
           "\"modules_to_save\": [" + many(40000, "x", "") + "]",
           "\"layers_to_transform\": 1, \"layers_pattern\": [" + many(40000, "x", "") + "]"})
    expect_error(Code::bad_config, "more than 1000 regular expressions",
        [&] { model::AdapterRules("{" + list + "}", "a.json"); });
}

DOCTEST_TEST_CASE("what would be computed in another way is refused by name") {
  const auto refused = [](core::Json more, const std::string& part) {
    core::Json config = {{"r", 4}, {"lora_alpha", 8}, {"target_modules", {"q_proj"}}};
    config.update(more);
    expect_error(
        Code::bad_config, part, [&] { model::AdapterRules(core::dump(config), "a.json"); });
  };
  refused({{"peft_type", "IA3"}}, "IA3");
  refused({{"use_dora", true}}, "\"use_dora\"");
  refused({{"bias", "all"}}, "\"bias\"");
  refused({{"lora_bias", true}}, "\"lora_bias\"");
  refused({{"init_lora_weights", "pissa_niter_4"}}, "pissa_niter_4");
  refused({{"megatron_config", {{"a", 1}}}}, "\"megatron_config\"");
  refused({{"layer_replication", {{0, 2}}}}, "\"layer_replication\"");
  refused({{"trainable_token_indices", {1}}}, "\"trainable_token_indices\"");
  refused({{"of_tomorrow", 3}}, "\"of_tomorrow\"");
  refused({{"r", 0}}, "\"r\"");
  refused({{"r", 1.5}}, "\"r\"");
  refused({{"target_modules", "("}}, "\"target_modules\"");
  refused({{"rank_pattern", {{"q_proj", "x"}}}}, "\"rank_pattern\"");
  // Options that are off have no effect.
  model::AdapterRules(R"({"use_dora": false, "megatron_config": null, "loftq_config": {},
                          "megatron_core": "megatron.core", "init_lora_weights": "gaussian"})",
      "a.json");
}

DOCTEST_TEST_CASE("an adapter that is not of the model is told by its tensor") {
  const TemporaryFolder folder;
  const auto base = kGoldenFamilies + "llama";
  int number = 0;
  const auto refused = [&](Code code, const std::string& part, auto change) {
    Made made({"q_proj"});
    add_terms(made, base, "q_proj");
    change(made);
    const auto path = folder / std::to_string(number++);
    made.write(path);
    expect_error(code, part, [&] { model::load(base, torch::kCPU, torch::kFloat32, path); });
  };
  const std::string first = kPrefix + "model.layers.0.self_attn.q_proj.lora_A.weight";
  refused(Code::bad_data, "matches no matrix of the model; is the adapter for another model?",
      [](Made& m) { m.term("model.layers.9.x", 4, 4); });
  refused(Code::bad_data, "has only one of lora_A and lora_B",
      [&](Made& m) { m.tensors.erase(first); });
  refused(Code::bad_data, "require (2, ", [&](Made& m) {
    m.tensors[first] = torch::zeros({2, 3});
  });
  refused(Code::bad_data, "require (4, ", [&](Made& m) { m.config["r"] = 4; });
  refused(Code::bad_data, "not finite",
      [&](Made& m) { m.tensors[first] = m.tensors[first].clone().fill_(NAN); });
  refused(
      Code::bad_data, "does not choose", [](Made& m) { m.config["target_modules"] = {"x_proj"}; });
  refused(
      Code::bad_data, "has no lora_A and lora_B of model.layers.0.self_attn.k_proj", [](Made& m) {
        m.config["target_modules"] = {"q_proj", "k_proj"};
      });
  refused(Code::bad_data,
      "has no tensor base_model.model.lm_head.weight, which \"modules_to_save\"",
      [](Made& m) { m.config["modules_to_save"] = {"lm_head"}; });
  refused(Code::bad_data, "has no tensor base_model.model.model.layers.0.mlp.down_proj.weight",
      [](Made& m) { m.config["modules_to_save"] = {"layers.0.mlp"}; });
  refused(Code::bad_data, "has no tensor of score, which \"modules_to_save\" requires",
      [](Made& m) { m.config["modules_to_save"] = {"score"}; });
  refused(Code::bad_data, "floating point",
      [&](Made& m) { m.tensors[first] = m.tensors[first].to(torch::kInt32); });
  fs::create_directories(folder / "none");
  const auto load = [&] { model::load(base, torch::kCPU, torch::kFloat32, folder / "none"); };
  expect_error(Code::no_input, "it has no adapter_config.json", load);
  overwrite(folder / "none/adapter_config.json", "{}");
  expect_error(Code::no_input, "has no adapter_model.safetensors", load);
  overwrite(folder / "none/adapter_model.bin", "");
  expect_error(Code::no_input, "safe_serialization=True", load);
}

DOCTEST_TEST_CASE("the weights that were saved are checked under an adapter too") {
  const TemporaryFolder folder;
  model::save(folder / "m", *random_model(small_gpt2()), {}, "");
  Made made({"c_attn"});
  add_terms(made, folder / "m", "c_attn", true);
  made.write(folder / "a");
  const auto load = [&] {
    return model::load(folder / "m", torch::kCPU, torch::kBFloat16, folder / "a");
  };
  DOCTEST_CHECK((load().model->named_weights()[0].second.scalar_type() == torch::kBFloat16));
  auto config = core::read_json(folder / "m/config.json");
  config["tessera"]["model"]["norm_epsilon"] = config["layer_norm_epsilon"] = 1e-3;
  overwrite(folder / "m/config.json", core::dump(config));
  expect_error(Code::bad_data, "not the configuration", load);
}
