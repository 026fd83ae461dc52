// What the classes of transformers compute (class_row.h): folders read as they read them, and
// models written as a family only if its class computes them. tests/golden/family_draws.py made
// family_classes.json; family_draws.bats draws more configurations and runs transformers itself.

#include "core/file_text.h"
#include "folder_of_test.h"
#include "model/families/family.h"
#include "model/folder.h"
#include "model/tensor_files.h"
#include "small_models.h"

namespace {

using core::Code;

const std::string kClasses = "tests/golden/family_classes.json";

// The numbers of weights_of() in family_draws.py.
torch::Tensor mixed_weights(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::uint32_t seed = 2166136261;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619;
  const auto made = torch::empty(shape, torch::kFloat64);
  auto* const numbers = made.data_ptr<double>();
  const bool vector = shape.size() == 1;
  const double above = vector && name.ends_with("weight") ? 1 : 0, width = vector ? 0.8 : 1.2;
  for (std::int64_t i = 0; i < made.numel(); ++i) {
    auto x = (static_cast<std::uint32_t>(i) * 0x9E3779B9U) ^ seed;
    x = (x ^ (x >> 16)) * 0x85EBCA6BU;
    x = (x ^ (x >> 13)) * 0xC2B2AE35U;
    x = x ^ (x >> 16);
    numbers[i] = width * (x / 4294967296.0 - 0.5) + above;
  }
  return made.to(torch::kFloat32);
}

/// A folder of this config.json, with the weights that the script gave it.
void write_folder(const std::string& path, const core::Json& config) {
  std::filesystem::create_directories(path);
  overwrite(path + "/config.json", core::dump(config));
  const auto& family = model::family_named(config["model_type"], path);
  std::int64_t vocabulary = 0;
  const auto options = model::family_options(family, config, path, &vocabulary);
  const nn::Model model(options, vocabulary);
  model::NamedTensors tensors;
  for (const auto& [name, weight] : model.named_weights())
    for (const auto& piece : model::pieces_of(&family, options, name, weight.size(0)))
      tensors.emplace_back(
          piece.tensor, mixed_weights(piece.tensor, piece.shape_there(weight.sizes())));
  core::Output out(path + "/model.safetensors");
  model::write_safetensors(out, tensors);
  out.commit();
}

double gap_of(const nn::Model& model, const torch::Tensor& ids, const std::vector<double>& nll) {
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of(ids);
  const auto hidden = model.architecture->forward(batch, nullptr);
  const auto block = model.head->block(hidden.output.squeeze(0), batch.targets.squeeze(0), false);
  return (block->log_prob + torch::tensor(nll, torch::kFloat64)).abs().max().item<double>();
}

nn::ModelOptions llama_like() {
  auto options = small_gpt2();
  options.vocabulary.tied = false;
  auto& transformer = options.transformer;
  transformer.positions = "rope", transformer.norm_kind = "rms";
  transformer.feed_forward = "gated", transformer.activation = "silu";
  transformer.bias = false;
  return options;
}

nn::ModelOptions gemma_like() {
  auto options = llama_like();
  options.vocabulary.tied = options.vocabulary.scale_embedding = true;
  options.transformer.norm_kind = "rms-one", options.transformer.activation = "gelu";
  return options;
}

std::string family_name(const nn::ModelOptions& options, const std::string& preferred = {}) {
  const auto* const found = model::family_of(options, preferred);
  return found == nullptr ? "none" : std::string(found->type);
}

core::Json config_of(const std::string& family, const nn::ModelOptions& options) {
  const auto config = model::family_config(model::family_named(family, ""), options, 64, -1);
  return core::parse_json(core::dump(config), family);
}

core::Json needed(const std::string& family) {
  return {{"model_type", family}, {"vocab_size", 64}, {"hidden_size", 16}, {"num_hidden_layers", 4},
      {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"head_dim", 4},
      {"intermediate_size", 24}};
}

model::Config parsed(core::Json config, const core::Json& changes) {
  if (!changes.is_null()) config.update(changes);
  return model::parse_config(config, "config.json");
}

}  // namespace

DOCTEST_TEST_CASE(
    "every family's defaults, and every key at another value, give its class's loss") {
  const auto json = core::read_json(kClasses);
  const auto ids = torch::tensor(json["ids"].get<std::vector<std::int64_t>>());
  std::map<std::string, int> cases;
  for (const auto& one : json["cases"]) {
    const auto family = one["family"].get<std::string>(), name = one["case"].get<std::string>();
    DOCTEST_CAPTURE(family);
    DOCTEST_CAPTURE(name);
    const TemporaryFolder folder;
    write_folder(folder / "m", one["config"]);
    const auto loaded = model::load(folder / "m", torch::kCPU, torch::kFloat64);
    DOCTEST_CHECK(gap_of(*loaded.model, ids, one["nll"].get<std::vector<double>>()) < 1e-4);
    // It is written as the family, which then gives the same model. Only transformers' automatic
    // classes read layer_types of a Mistral.
    const auto* const written = model::family_of(loaded.model->options, family);
    DOCTEST_REQUIRE(written != nullptr);
    DOCTEST_CHECK(written->type == (family == "mistral" && name == "every" ? "smollm3" : family));
    ++cases[family];
  }
  DOCTEST_CHECK(cases.size() + 1 == model::family_names().size());  // rwkv7 is not of transformers
}

DOCTEST_TEST_CASE("a model that no class computes has no family, and the note says why") {
  const auto none = [](const std::string& part, nn::ModelOptions options, auto change) {
    change(options);
    DOCTEST_CHECK(family_name(options) == "none");
    const auto note = model::without_family(options);
    DOCTEST_CHECK_MESSAGE(note.find(part) != std::string::npos, note);
    DOCTEST_CHECK(note.find('\n') == std::string::npos);
  };
  none("gemma, but rope_partial_factor is 0.5, not 1.0", gemma_like(),
      [](auto& o) { o.transformer.rope.share = 0.5; });
  none("qwen2, but rope_partial_factor is 0.5, not 1.0", llama_like(), [](auto& o) {
    o.transformer.bias = true, o.transformer.bias_of = {"qkv"}, o.transformer.rope.share = 0.5;
  });
  none("olmoe, but rope_partial_factor is 0.5, not 1.0", llama_like(), [](auto& o) {
    o.transformer.experts.count = 4, o.transformer.qk_norm = "whole";
    o.transformer.rope.share = 0.5;
  });
  none("gemma, but rope_partial_factor is 0.5, not 1.0", gemma_like(), [](auto& o) {
    o.transformer.rope.share = 0.5;
    o.transformer.rope.scaling = "linear", o.transformer.rope.factor = 2;
  });
  none("gemma3_text, but attention_softcap is 2.0, not 0.0", gemma_like(), [](auto& o) {
    o.transformer.norm = "sandwich", o.transformer.qk_norm = "head";
    o.transformer.attention_window = {5, 0}, o.transformer.rope.local_theta = 50;
    o.transformer.attention_softcap = 2;
  });
  none("llama, but logit_softcap is 3.0, not 0.0", llama_like(),
      [](auto& o) { o.vocabulary.logit_softcap = 3; });
  none("gemma, but activation is \"gelu-exact\", not \"gelu\"", gemma_like(),
      [](auto& o) { o.transformer.activation = "gelu-exact"; });
  none("attention_window is [4,2], not", llama_like(), [](auto& o) {
    o.transformer.attention_window = {4, 2};
  });
  none("gpt2, but scale_embedding is true, not false", small_gpt2(),
      [](auto& o) { o.vocabulary.scale_embedding = true; });
  none("memory_layer is ngram, not none", small_gpt2(),
      [](auto& o) { o.memory_layer.kind = "ngram"; });
  auto other = small_gpt2();
  other.arch = "lstm";
  DOCTEST_CHECK(model::without_family(other) == "");
  DOCTEST_CHECK(model::without_family(llama_like()) == "");
}

DOCTEST_TEST_CASE("options without effect keep no model from its family") {
  const auto named = [](const char* family, auto change) {
    auto options = llama_like();
    change(options.transformer.rope);
    DOCTEST_CHECK(family_name(options) == family);
  };
  named("llama", [](auto& rope) { rope.factor = 4; });
  named("llama", [](auto& rope) { rope.trained = 32; });
  named("llama", [](auto& rope) { rope.low = 2, rope.slow_beta = 2, rope.length = 1; });
  named("llama", [](auto& rope) { rope.factors = {2, 3}; });
  named("llama", [](auto& rope) { rope.scaling = "linear", rope.factor = 2, rope.trained = 32; });
  named("llama", [](auto& rope) { rope.scaling = "yarn", rope.factor = 2, rope.high = 8; });
  named("none", [](auto& rope) { rope.length = 2; });
}

DOCTEST_TEST_CASE(
    "a class whose heads must divide the width, or have its quotient, gets no others") {
  auto options = llama_like();
  options.shape.d_model = 18, options.shape.heads = 4, options.transformer.d_head = 4;
  DOCTEST_CHECK(family_name(options, "llama") == "mistral");
  options = llama_like();
  options.transformer.experts.count = 4, options.transformer.qk_norm = "whole";
  DOCTEST_CHECK(family_name(options) == "olmoe");
  options.transformer.d_head = 6;
  DOCTEST_CHECK(family_name(options) == "none");
}

DOCTEST_TEST_CASE("keys are written that a class would fill in otherwise") {
  for (const auto& family : model::family_names()) {
    DOCTEST_CAPTURE(family);
    const auto config = config_of(family, llama_like());
    DOCTEST_CHECK(config.contains("pad_token_id"));
    DOCTEST_CHECK(config["pad_token_id"].is_null());
  }
  auto olmo = llama_like();
  olmo.transformer.qk_norm = "whole", olmo.transformer.norm = "sublayer";
  olmo.transformer.attention_window = {5, 0};
  olmo.transformer.rope.theta = 500;
  DOCTEST_REQUIRE(family_name(olmo) == "olmo3");
  const core::Json turned = {{"rope_type", "default"}, {"rope_theta", 500.0}};
  DOCTEST_CHECK(config_of("olmo3", olmo)["rope_parameters"] ==
                core::Json{{"sliding_attention", turned}, {"full_attention", turned}});
  olmo.transformer.rope.local_theta = 50;
  DOCTEST_REQUIRE(family_name(olmo) == "olmo3");
  DOCTEST_CHECK(
      config_of("olmo3", olmo)["rope_parameters"]["sliding_attention"]["rope_theta"] == 50.0);
  auto smol = llama_like();
  smol.vocabulary.tied = true;
  smol.transformer.rope.skip = 2, smol.transformer.attention_window = {5};
  DOCTEST_REQUIRE(family_name(smol) == "smollm3");
  DOCTEST_CHECK(config_of("smollm3", smol)["layer_types"] ==
                core::Json{"sliding_attention", "sliding_attention"});
  auto phi = small_gpt2();
  phi.transformer.d_head = 8;  // as without it
  DOCTEST_CHECK(!config_of("phi", phi).contains("head_dim"));
  phi.transformer.d_head = 6;
  DOCTEST_CHECK(config_of("phi", phi)["head_dim"] == 6);
  auto growing = llama_like();
  growing.transformer.rope.scaling = "yarn", growing.transformer.rope.factor = 2;
  DOCTEST_REQUIRE(family_name(growing, "ministral3") == "ministral3");
  DOCTEST_CHECK(config_of("ministral3", growing)["rope_scaling"]["llama_4_scaling_beta"] == 0.0);
}

DOCTEST_TEST_CASE("keys that a class ignores change nothing and are named") {
  using Names = std::vector<std::string>;
  const auto same = [](const std::string& family, const core::Json& key, const Names& names) {
    DOCTEST_CAPTURE(family);
    const auto config = parsed(needed(family), key), usual = parsed(needed(family), {});
    DOCTEST_CHECK(core::to_json(config.options) == core::to_json(usual.options));
    DOCTEST_CHECK(config.ignored == names);
    DOCTEST_CHECK(usual.ignored.empty());
  };
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3", "olmo2", "gemma", "olmo3"})
    same(family, {{"partial_rotary_factor", 0.5}}, {"\"partial_rotary_factor\": 0.5"});
  same("gemma3_text", {{"attn_logit_softcapping", 2.0}}, {"\"attn_logit_softcapping\": 2.0"});
  same("gpt_neox", {{"rope_theta", 500.0}}, {});
  same("mistral", {{"attention_bias", true}, {"mlp_bias", true}},
      {"\"attention_bias\": true", "\"mlp_bias\": true"});
  same("llama", {{"sliding_window", 5}, {"layer_types", {"sliding_attention"}}},
      {"\"sliding_window\": 5", "\"layer_types\""});
  same("gemma", {{"query_pre_attn_scalar", 9}, {"hidden_activation", "relu"}},
      {"\"query_pre_attn_scalar\": 9"});
  same("qwen3", {{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}},
      {"\"partial_rotary_factor\": 0.25"});
  same("gemma", {{"hidden_act", "gelu"}}, {});
}

DOCTEST_TEST_CASE("what a class fills in for an absent key, and which key goes first") {
  const auto options = [](const std::string& family, const core::Json& keys) {
    return parsed(needed(family), keys).options;
  };
  const auto windows = [&](const std::string& family, const core::Json& keys) {
    return options(family, keys).transformer.attention_window;
  };
  using List = std::vector<std::int64_t>;
  DOCTEST_CHECK(windows("mistral", {}) == List{4096});
  DOCTEST_CHECK(windows("mistral", {{"sliding_window", nullptr}}) == List{});
  const core::Json kinds = {
      "full_attention", "sliding_attention", "full_attention", "full_attention"};
  DOCTEST_CHECK(
      windows("mistral", {{"layer_types", kinds}, {"sliding_window", 5}}) == List{0, 5, 0, 0});
  DOCTEST_CHECK(
      windows("qwen2", {{"use_sliding_window", true}, {"max_window_layers", 0}}) == List{4096});
  DOCTEST_CHECK(windows("gemma3_text", {{"sliding_window_pattern", 2}}) == List{4096, 0, 4096, 0});
  DOCTEST_CHECK(windows("smollm3", {{"use_sliding_window", true}, {"sliding_window", 5}}) ==
                List{0, 0, 0, 5});
  const auto rope = [&](const std::string& family, const core::Json& keys) {
    return options(family, keys).transformer.rope;
  };
  DOCTEST_CHECK(rope("olmo3", {}).theta == 5e5);
  DOCTEST_CHECK(rope("olmo3", {{"rope_theta", 500.0}}).local_theta == 5e5);
  DOCTEST_CHECK(rope("smollm3", {{"rope_parameters", {{"rope_type", "default"}}}}).theta == 2e6);
  const core::Json both = {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}},
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  DOCTEST_CHECK(rope("llama", both).factor == 2);
  const core::Json yarn = {
      {"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 12}};
  DOCTEST_CHECK(
      rope("llama", {{"rope_scaling", yarn}, {"original_max_position_embeddings", 20}}).trained ==
      20);
  const auto gpt2 =
      parsed({{"model_type", "gpt2"}, {"vocab_size", 64}, {"hidden_size", 16},
                 {"num_hidden_layers", 3}, {"max_position_embeddings", 32}, {"n_head", 2}},
          {{"num_attention_heads", 4}});
  DOCTEST_CHECK(gpt2.options.shape.d_model == 16);
  DOCTEST_CHECK(gpt2.options.shape.heads == 4);
  for (const char* family : {"mixtral", "qwen3_moe", "olmoe"}) {
    const bool mixtral = family == std::string("mixtral");
    const char *alias = mixtral ? "num_experts" : "num_local_experts",
               *key = mixtral ? "num_local_experts" : "num_experts";
    DOCTEST_CHECK(options(family, {{key, 4}, {alias, 8}, {"moe_intermediate_size", 24}})
                      .transformer.experts.count == 8);
  }
  // Version 4's "type" comes too late in the classes with two kinds of angles.
  DOCTEST_CHECK(
      rope("gemma3_text", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}).scaling ==
      "none");
}

DOCTEST_TEST_CASE("what a class fails on is refused by name") {
  const auto refused = [](const std::string& part, const std::string& family,
                           const core::Json& keys) {
    expect_error(Code::bad_config, part, [&] { parsed(needed(family), keys); });
  };
  const core::Json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  refused("\"partial_rotary_factor\": 0.5 with scaling \"linear\"", "llama",
      {{"partial_rotary_factor", 0.5}, {"rope_scaling", linear}});
  refused("\"rope_scaling\": type \"linear\"", "phi3", {{"rope_scaling", linear}});
  refused("\"rope_parameters\": an object without \"full_attention\"", "olmo3",
      {{"rope_parameters", {{"rope_type", "default"}}}});
  refused("\"rope_parameters\": other angles in some layers", "qwen3",
      {{"rope_parameters", {{"full_attention", linear}}}});
  refused("\"layer_types\": sliding_attention without use_sliding_window", "qwen2",
      {{"layer_types", core::Json::array({"sliding_attention", "full_attention", "full_attention",
                           "full_attention"})}});
  refused("\"sliding_window\": an empty window", "mistral", {{"sliding_window", 0}});
  refused("\"num_attention_heads\": a number that does not divide", "llama", {{"hidden_size", 18}});
  refused("\"head_dim\": a number other than hidden_size / num_attention_heads", "gpt_neox",
      {{"head_dim", 6}});
  refused("\"is_causal\": false", "llama", {{"is_causal", false}});
  refused(
      "\"use_bidirectional_attention\": true", "gemma", {{"use_bidirectional_attention", true}});
  refused("\"llama_4_scaling_beta\"", "ministral3", {{"rope_scaling", linear}});
}
