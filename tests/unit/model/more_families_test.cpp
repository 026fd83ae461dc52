// Families without a golden folder of transformers, compared with their formulas in plain float64
// loops, below, at and beyond their limits (windows, training lengths).

#include <filesystem>
#include <numbers>

#include "folder_of_test.h"
#include "model/adapter.h"
#include "model/export_model.h"
#include "model/folder.h"
#include "model/model_config.h"
#include "nll_of.h"
#include "nn/base/runtime.h"
#include "slow_transformer.h"
#include "small_models.h"

namespace {

using core::Code;
using Form = SlowTransformer::Form;

constexpr std::int64_t kWords = 40, kWide = 16, kInner = 24, kLayers = 4, kHeads = 2, kWidth = 8;

/// Random tensors of a folder, and its config.json.
struct Folder {
  core::Json config;
  std::map<std::string, torch::Tensor> tensors;

  explicit Folder(const std::string& type, const std::vector<std::string>& norms,
      const std::string& base = "model.", std::int64_t kv_heads = 1) {
    torch::manual_seed(12);
    config = {{"model_type", type}, {"vocab_size", kWords}, {"hidden_size", kWide},
        {"intermediate_size", kInner}, {"num_hidden_layers", kLayers},
        {"num_attention_heads", kHeads}, {"num_key_value_heads", kv_heads}, {"head_dim", kWidth},
        {"rms_norm_eps", 1e-5}, {"tie_word_embeddings", true}, {"max_position_embeddings", 64},
        {"rope_theta", 1000.0}};
    const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
      tensors[base + name + ".weight"] = 0.3 * torch::randn({rows, columns});
    };
    const auto norm = [&](const std::string& name, std::int64_t width) {
      tensors[base + name + ".weight"] = 1 + 0.3 * torch::randn({width});
    };
    matrix("embed_tokens", kWords, kWide);
    norm("norm", kWide);
    for (std::int64_t i = 0; i < kLayers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      matrix(layer + "self_attn.q_proj", kHeads * kWidth, kWide);
      matrix(layer + "self_attn.k_proj", kv_heads * kWidth, kWide);
      matrix(layer + "self_attn.v_proj", kv_heads * kWidth, kWide);
      matrix(layer + "self_attn.o_proj", kWide, kHeads * kWidth);
      matrix(layer + "mlp.gate_proj", kInner, kWide);
      matrix(layer + "mlp.up_proj", kInner, kWide);
      matrix(layer + "mlp.down_proj", kWide, kInner);
      for (const auto& name : norms) norm(layer + name, kWide);
    }
  }
  void qk_norms(std::int64_t query, std::int64_t key, const std::string& base = "model.") {
    for (std::int64_t i = 0; i < kLayers; ++i)
      for (const auto& [name, width] : {std::pair("q_norm", query), std::pair("k_norm", key)})
        tensors[base + "layers." + std::to_string(i) + ".self_attn." + name + ".weight"] =
            1 + 0.3 * torch::randn({width});
  }
  void write(const std::string& path) const {
    std::filesystem::create_directories(path);
    overwrite(path + "/config.json", core::dump(config));
    core::Output out(path + "/model.safetensors");
    model::write_safetensors(out, {tensors.begin(), tensors.end()});
    out.commit();
  }
};

std::vector<double> plain_angles(double theta) {
  std::vector<double> angles;
  for (int i = 0; i < kWidth / 2; ++i)
    angles.push_back(std::pow(theta, -2. * i / static_cast<double>(kWidth)));
  return angles;
}

/// YaRN (Peng et al. 2023, section 3.2): angles of more than `fast` turns in `trained` tokens are
/// unchanged, those of fewer than `slow` are divided, with a ramp between.
std::vector<double> yarn_angles(
    double theta, double factor, double trained, double fast, double slow) {
  const auto pair = [&](double turns) {
    return kWidth * std::log(trained / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  const double low = std::max(std::floor(pair(fast)), 0.),
               high = std::min(std::ceil(pair(slow)), kWidth - 1.);
  auto angles = plain_angles(theta);
  for (int i = 0; i < kWidth / 2; ++i) {
    const double ramp = std::clamp((i - low) / std::max(high - low, 1e-3), 0., 1.);
    angles[static_cast<std::size_t>(i)] *= ramp / factor + 1 - ramp;
  }
  return angles;
}

Form usual_form() {
  Form form;
  form.epsilon = 1e-5, form.width = kWidth, form.heads = kHeads;
  form.windows.assign(kLayers, 0);
  form.inverse.assign(kLayers, plain_angles(1000));
  form.length.assign(kLayers, 1);
  return form;
}

/// Checks the folder's model against the loops for texts of three lengths, also as another folder
/// of its family.
void check(const Folder& made, const Form& form, const std::string& family, double exactly = 1e-9) {
  const TemporaryFolder folder;
  made.write(folder / "m");
  const auto exact = model::load(folder / "m", torch::kCPU, torch::kFloat64);
  const auto near = model::load(folder / "m");
  DOCTEST_CHECK(exact.family == family);
  const SlowTransformer slow(form, made.tensors);
  for (const std::int64_t n : {5, 17, 40}) {
    DOCTEST_CAPTURE(n);
    const auto ids = some_ids(kWords, n);
    const auto expected = torch::tensor(
        slow.nll({ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + n}),
        torch::kFloat64);
    DOCTEST_CHECK((nll_of(*exact.model, ids) - expected).abs().max().item<double>() < exactly);
    DOCTEST_CHECK((nll_of(*near.model, ids) - expected).abs().max().item<double>() < 2e-4);
  }
  model::export_model(near, {}, folder / "again");
  const auto again = model::load(folder / "again");
  DOCTEST_CHECK(again.family == family);
  DOCTEST_CHECK((again.fingerprint == near.fingerprint));
}

}  // namespace

DOCTEST_TEST_CASE("smollm3: each fourth layer turns nothing, or those of a list") {
  Folder made("smollm3", {"input_layernorm", "post_attention_layernorm"});
  auto form = usual_form();
  form.inverse[3].clear();
  check(made, form, "smollm3");
  made.config["no_rope_layers"] = {1, 0, 1, 0};
  form.inverse[1].clear();
  check(made, form, "smollm3");
  made.config["no_rope_layers"] = {1, 0, 0, 1};
  const TemporaryFolder folder;
  made.write(folder / "m");
  expect_error(Code::bad_config, "no_rope_layers", [&] { model::load(folder / "m"); });
}

DOCTEST_TEST_CASE("olmo3: windows in three of four layers, whose angles nothing scales") {
  Folder made("olmo3", {"post_attention_layernorm", "post_feedforward_layernorm"});
  made.qk_norms(kHeads * kWidth, kWidth);
  made.config["sliding_window"] = 6;
  core::Json turned = {{"rope_type", "default"}, {"rope_theta", 1000.0}};
  made.config["rope_parameters"] = {{"full_attention", turned}, {"sliding_attention", turned}};
  auto form = usual_form();
  form.before = false, form.qk_norm = "whole";
  form.attention_out = "post_attention_layernorm", form.feed_out = "post_feedforward_layernorm";
  form.windows = {6, 6, 6, 0};
  check(made, form, "olmo3");
  made.config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 8.0},
      {"original_max_position_embeddings", 16}, {"beta_fast", 4.0}, {"beta_slow", 1.0},
      {"attention_factor", 1.25}};
  form.inverse[3] = yarn_angles(1000, 8, 16, 4, 1);
  form.length[3] = 1.25;
  check(made, form, "olmo3");
}

DOCTEST_TEST_CASE("granite: factors of embeddings, residuals, scores and logits") {
  Folder made("granite", {"input_layernorm", "post_attention_layernorm"});
  made.config["embedding_multiplier"] = 12.0, made.config["residual_multiplier"] = 0.22;
  made.config["attention_multiplier"] = 0.05, made.config["logits_scaling"] = 8.0;
  auto form = usual_form();
  form.embedding = 12, form.residual = 0.22, form.attention = 0.05, form.logits = 8;
  // Its factors are multiplied in as float32.
  check(made, form, "granite", 1e-7);
  // An adapter refers to the file's matrices.
  const TemporaryFolder folder;
  made.write(folder / "m");
  std::filesystem::create_directory(folder / "a");
  overwrite(folder / "a/adapter_config.json",
      R"({"r": 2, "lora_alpha": 4, "target_modules": ["down_proj"]})");
  model::NamedTensors terms;
  auto summed = made.tensors;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string module = "model.layers." + std::to_string(i) + ".mlp.down_proj";
    const auto a = torch::randn({2, kInner}), b = torch::randn({kWide, 2});
    terms.emplace_back("base_model.model." + module + ".lora_A.weight", a);
    terms.emplace_back("base_model.model." + module + ".lora_B.weight", b);
    summed[module + ".weight"] = summed[module + ".weight"] + 2 * b.matmul(a);
  }
  core::Output out(folder / "a/adapter_model.safetensors");
  model::write_safetensors(out, terms);
  out.commit();
  const auto adapted = model::load(folder / "m", torch::kCPU, torch::kFloat32, folder / "a");
  const auto ids = some_ids(kWords, 20);
  const auto expected = torch::tensor(
      SlowTransformer(form, summed)
          .nll({ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + 20}),
      torch::kFloat64);
  DOCTEST_CHECK((nll_of(*adapted.model, ids) - expected).abs().max().item<double>() < 2e-4);
}

DOCTEST_TEST_CASE("yarn: what turned rows are multiplied by has two weights, or a number") {
  for (const bool quotient : {true, false}) {
    Folder made("llama", {"input_layernorm", "post_attention_layernorm"});
    made.config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0},
        {"original_max_position_embeddings", 16}, {"beta_fast", 32.0}, {"beta_slow", 1.0},
        {"mscale", 1.2}};
    if (quotient) made.config["rope_scaling"]["mscale_all_dim"] = 0.7;
    auto form = usual_form();
    form.inverse.assign(kLayers, yarn_angles(1000, 4, 16, 32, 1));
    const auto mscale = [](double weight) { return 0.1 * weight * std::log(4.) + 1; };
    form.length.assign(kLayers, quotient ? mscale(1.2) / mscale(0.7) : mscale(1));
    check(made, form, "llama");
  }
}

DOCTEST_TEST_CASE("longrope: the factors of rows as long as in training, and no longer ones") {
  Folder made("llama", {"input_layernorm", "post_attention_layernorm"});
  const std::vector<double> factors = {1, 1.5, 2.25, 4};
  made.config["original_max_position_embeddings"] = 40;
  made.config["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", factors}, {"long_factor", {1, 2, 8, 16}}};
  auto form = usual_form();
  for (auto& layer : form.inverse)
    for (std::size_t i = 0; i < factors.size(); ++i) layer[i] /= factors[i];
  form.length.assign(kLayers, std::sqrt(1 + std::log(64. / 40) / std::log(40.)));
  check(made, form, "llama");
  made.config["rope_scaling"]["attention_factor"] = 1.5;
  form.length.assign(kLayers, 1.5);
  check(made, form, "llama");
  const TemporaryFolder folder;
  made.write(folder / "m");
  DOCTEST_CHECK(model::load(folder / "m").model->architecture->context() == 40);
  made.config["rope_scaling"]["short_factor"] = {1, 2};
  made.write(folder / "m");
  expect_error(
      Code::bad_config, "rope-short-factors: has 2 numbers", [&] { model::load(folder / "m"); });
}

DOCTEST_TEST_CASE("ministral3: YaRN in the length of training, where queries do not grow") {
  Folder made("ministral3", {"input_layernorm", "post_attention_layernorm"});
  made.config.erase("rope_theta");
  made.config["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 1000.0}, {"factor", 8.0},
      {"original_max_position_embeddings", 40}, {"beta_fast", 4.0}, {"beta_slow", 1.0},
      {"mscale", 1.0}, {"mscale_all_dim", 1.0}, {"llama_4_scaling_beta", 0.1}};
  auto form = usual_form();
  form.inverse.assign(kLayers, yarn_angles(1000, 8, 40, 4, 1));
  check(made, form, "ministral3");
  const TemporaryFolder folder;
  made.write(folder / "m");
  DOCTEST_CHECK(model::load(folder / "m").model->architecture->context() == 40);
  expect_error(Code::bad_config, "rope_query_growth", [&] {
    model::export_model(model::load(folder / "m"), {.family = "mistral"}, folder / "out");
  });
}

DOCTEST_TEST_CASE(
    "phi: one norm before both sub-layers, half of a head turned, biases everywhere") {
  constexpr std::int64_t kTurned = kWidth / 2;
  torch::manual_seed(5);
  std::map<std::string, torch::Tensor> tensors;
  const auto linear = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors[name + ".weight"] = 0.3 * torch::randn({rows, columns});
    tensors[name + ".bias"] = 0.3 * torch::randn({rows});
  };
  const auto norm = [&](const std::string& name) {
    tensors[name + ".weight"] = 1 + 0.3 * torch::randn({kWide});
    tensors[name + ".bias"] = 0.3 * torch::randn({kWide});
  };
  tensors["model.embed_tokens.weight"] = torch::randn({kWords, kWide});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    norm(layer + "input_layernorm");
    for (const char* name : {"q_proj", "k_proj", "v_proj", "dense"})
      linear(layer + "self_attn." + name, kWide, kWide);
    linear(layer + "mlp.fc1", kInner, kWide), linear(layer + "mlp.fc2", kWide, kInner);
  }
  norm("model.final_layernorm"), linear("lm_head", kWords, kWide);
  core::Json config = {{"model_type", "phi"}, {"vocab_size", kWords}, {"hidden_size", kWide},
      {"intermediate_size", kInner}, {"num_hidden_layers", 2}, {"num_attention_heads", kHeads},
      {"partial_rotary_factor", .5}, {"rope_theta", 1000.0}, {"layer_norm_eps", 1e-5},
      {"max_position_embeddings", 64}};
  const TemporaryFolder folder;
  const auto write = [&] {
    std::filesystem::create_directories(folder / "m");
    overwrite(folder / "m/config.json", core::dump(config));
    core::Output out(folder / "m/model.safetensors");
    model::write_safetensors(out, {tensors.begin(), tensors.end()});
    out.commit();
  };
  write();
  const auto at = [&](const std::string& name) { return tensors.at(name).to(torch::kFloat64); };
  const auto of = [&](const std::string& name, const torch::Tensor& x) {
    auto y = torch::zeros({x.size(0), at(name + ".bias").size(0)}, torch::kFloat64);
    for (std::int64_t t = 0; t < x.size(0); ++t)
      y[t] = at(name + ".weight").mv(x[t]) + at(name + ".bias");
    return y;
  };
  const auto normed = [&](const std::string& name, const torch::Tensor& x) {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * at(name + ".weight") +
           at(name + ".bias");
  };
  const auto turned = [&](const torch::Tensor& x) {  // (T, width) of a head
    auto y = x.clone();
    for (std::int64_t t = 0; t < x.size(0); ++t)
      for (std::int64_t i = 0; i < kTurned / 2; ++i) {
        const double angle = static_cast<double>(t) * std::pow(1000., -2. * i / kTurned);
        const auto a = x[t][i], b = x[t][i + kTurned / 2];
        y[t][i] = a * std::cos(angle) - b * std::sin(angle);
        y[t][i + kTurned / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    return y;
  };
  for (const std::int64_t n : {5, 17, 40}) {
    const auto ids = some_ids(kWords, n);
    auto x = at("model.embed_tokens.weight").index_select(0, ids);
    for (int i = 0; i < 2; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      const auto h = normed(layer + "input_layernorm", x);
      const auto q = of(layer + "self_attn.q_proj", h), k = of(layer + "self_attn.k_proj", h),
                 v = of(layer + "self_attn.v_proj", h);
      std::vector<torch::Tensor> heads;
      for (std::int64_t head = 0; head < kHeads; ++head) {
        const auto part = [&](const torch::Tensor& all) {
          return all.narrow(1, head * kWidth, kWidth);
        };
        auto scores = turned(part(q)).matmul(turned(part(k)).t()) / std::sqrt(double{kWidth});
        scores = scores + torch::full({n, n}, -INFINITY, torch::kFloat64).triu(1);
        heads.push_back(scores.softmax(-1).matmul(part(v)));
      }
      const auto inner = of(layer + "mlp.fc1", h);
      const auto tanh =
          (std::sqrt(2 / std::numbers::pi) * (inner + 0.044715 * inner.pow(3))).tanh();
      x = x + of(layer + "self_attn.dense", torch::cat(heads, 1)) +
          of(layer + "mlp.fc2", 0.5 * inner * (1 + tanh));
    }
    const auto rows = of("lm_head", normed("model.final_layernorm", x)).log_softmax(-1);
    const auto expected =
        -rows.narrow(0, 0, n - 1).gather(1, ids.slice(0, 1).unsqueeze(1)).view(-1);
    const auto exact = model::load(folder / "m", torch::kCPU, torch::kFloat64);
    const auto near = model::load(folder / "m");
    DOCTEST_CHECK((nll_of(*exact.model, ids) - expected).abs().max().item<double>() < 1e-9);
    DOCTEST_CHECK((nll_of(*near.model, ids) - expected).abs().max().item<double>() < 2e-4);
  }
  const auto near = model::load(folder / "m");
  model::export_model(near, {}, folder / "again");
  const auto again = model::load(folder / "again");
  DOCTEST_CHECK(again.family == "phi");
  DOCTEST_CHECK((again.fingerprint == near.fingerprint));
  config["qk_layernorm"] = true;
  write();
  expect_error(Code::bad_config, "qk_layernorm", [&] { model::load(folder / "m"); });
}

DOCTEST_TEST_CASE("dynamic scaling: as without it within the length of training, and no farther") {
  Folder made("llama", {"input_layernorm", "post_attention_layernorm"});
  made.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  check(made, usual_form(), "llama");
  const TemporaryFolder folder;
  made.write(folder / "m");
  DOCTEST_CHECK(model::load(folder / "m").model->architecture->context() == 64);
}

DOCTEST_TEST_CASE("gemma3: the text's part of a model that sees images") {
  for (const std::string base : {"language_model.model.", "model.language_model."}) {
    DOCTEST_CAPTURE(base);
    Folder made("gemma3_text",
        {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
            "post_feedforward_layernorm"},
        base);
    made.qk_norms(kWidth, kWidth, base);
    auto text = made.config;
    text["query_pre_attn_scalar"] = 16, text["sliding_window"] = 6;
    text["layer_types"] = {
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"};
    text["rope_local_base_freq"] = 50.0;
    text["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
    made.config = {{"model_type", "gemma3"}, {"text_config", text}, {"eos_token_id", {1, 3}},
        {"vision_config", {{"hidden_size", 4}}}};
    made.tensors["vision_tower.vision_model.x.weight"] = torch::randn({3, 4});
    made.tensors["multi_modal_projector.mm_input_projection_weight"] = torch::randn({3, 4});
    auto form = usual_form();
    form.base = base, form.one_more = true, form.gelu = true, form.qk_norm = "head";
    form.embedding = 4, form.attention = 0.25, form.epsilon = 1e-5;
    form.attention_out = "post_attention_layernorm", form.feed_out = "post_feedforward_layernorm";
    form.feed_in = "pre_feedforward_layernorm";
    form.windows = {6, 6, 0, 6};
    form.inverse.assign(kLayers, plain_angles(50));
    form.inverse[2] = plain_angles(1000);
    for (auto& angle : form.inverse[2]) angle /= 8;
    std::vector<std::string> said;
    const auto threads = at::get_num_threads();
    nn::start(threads, 1, [&](const std::string& line) { said.push_back(line); });
    check(made, form, "gemma3_text");
    nn::start(threads, 1);
    DOCTEST_REQUIRE(!said.empty());
    DOCTEST_CHECK(said[0].find("config.json: loads the text part of the model without its "
                               "image part") != std::string::npos);
    // A tensor of no part is still reported.
    made.tensors["language_model.model.layers.0.more.weight"] = torch::randn({2});
    const TemporaryFolder folder;
    made.write(folder / "m");
    expect_error(Code::bad_data, "matches no part", [&] { model::load(folder / "m"); });
  }
}
