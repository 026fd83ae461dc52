// Relatives of Llama whose feed-forward networks are experts in every layer: Mixtral, Qwen 3 MoE
// and OLMoE. Keys that only training reads (load-balancing loss, router noise) are ignored.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/families/gated_family.h"

namespace model {
namespace {

constexpr GatedDefaults kMixtral = {.context = 131072, .epsilon = 1e-5};
constexpr GatedDefaults kQwen3 = {.context = 32768, .width_key = "moe_intermediate_size"};
constexpr GatedDefaults kOlmoe = {.context = 4096, .epsilon = 1e-5};

nn::ModelOptions with_experts(const ConfigKeys& keys, const GatedDefaults& defaults,
                              std::int64_t count, std::int64_t per_token, bool normalised) {
  auto options = gated_options(keys, defaults);
  options.transformer.experts = {count, per_token, normalised};
  if (count < 1) keys.unsupported("num_experts", "0");
  for (const char* shared : {"shared_expert_intermediate_size", "n_shared_experts",
                             "num_shared_experts", "shared_intermediate_size"})
    if (keys.whole(shared, 0) > 0) keys.unsupported(shared, std::to_string(keys.whole(shared, 0)));
  return options;
}

// Reads "num_experts", which transformers 5 also writes under another name.
std::int64_t experts_of(const ConfigKeys& keys) {
  return keys.has("num_experts") ? keys.required("num_experts")
                                 : keys.required("num_local_experts");
}

nn::ModelOptions mixtral_options(const ConfigKeys& keys) {
  auto options = with_experts(keys, kMixtral, keys.whole("num_local_experts", 8),
                              keys.whole("num_experts_per_tok", 2), true);
  auto& transformer = options.transformer;
  if (!keys.has("rope_theta") && !keys.has("rope_parameters")) transformer.rope.theta = 1e6;
  if (const auto window = keys.whole("sliding_window", 0); window > 0)
    transformer.attention_window = {window};
  return options;
}

void mixtral_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  const auto& windows = options.transformer.attention_window;
  const auto& experts = options.transformer.experts;
  put_gated(options, config, kMixtral);
  config["num_local_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  config["sliding_window"] =
      windows.empty() ? core::OrderedJson(nullptr) : core::OrderedJson(windows[0]);
}

void put_experts(const nn::ModelOptions& options, core::OrderedJson& config) {
  const auto& transformer = options.transformer;
  config["attention_bias"] = transformer.has_bias("qkv");
  config["num_experts"] = transformer.experts.count;
  config["num_experts_per_tok"] = transformer.experts.per_token;
  config["norm_topk_prob"] = transformer.experts.normalised;
}

// The format also allows layers without experts, and windows from a layer on. No released model has
// either.
nn::ModelOptions qwen3_moe_options(const ConfigKeys& keys) {
  auto options = with_experts(keys, kQwen3, experts_of(keys), keys.whole("num_experts_per_tok", 8),
                              keys.truth("norm_topk_prob", false));
  keys.expect("use_sliding_window", false, false);
  if (const auto step = keys.whole("decoder_sparse_step", 1); step != 1)
    keys.unsupported("decoder_sparse_step", std::to_string(step));
  if (!keys.wholes("mlp_only_layers").empty())
    keys.unsupported("mlp_only_layers", "layers without experts");
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "head";
  return options;
}

void qwen3_moe_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config, kQwen3);
  put_experts(options, config);
  config["num_local_experts"] = options.transformer.experts.count;
  config["intermediate_size"] = options.shape.ffn_width();  // required, although no layer uses it
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = core::OrderedJson::array();
  config["use_sliding_window"] = false;
}

nn::ModelOptions olmoe_options(const ConfigKeys& keys) {
  auto options = with_experts(keys, kOlmoe, experts_of(keys), keys.whole("num_experts_per_tok", 8),
                              keys.truth("norm_topk_prob", false));
  if (keys.has("clip_qkv"))
    keys.unsupported("clip_qkv", fmt::format("{}", keys.number("clip_qkv", 0)));
  if (keys.truth("attention_bias", false)) set_biases(options, {"qkv", "output"});
  options.transformer.qk_norm = "whole";
  return options;
}

void olmoe_keys(const nn::ModelOptions& options, core::OrderedJson& config) {
  put_gated(options, config, kOlmoe);
  put_experts(options, config);
}

// Replaces mlp's matrices by the experts' matrices.
Family expert_family(std::string_view type, std::string_view architecture,
                     nn::ModelOptions (*options)(const ConfigKeys&),
                     void (*keys)(const nn::ModelOptions&, core::OrderedJson&),
                     std::string_view router, std::vector<std::string_view> expand,
                     std::string_view reduce) {
  Family made = gated_family(type, architecture, options, keys);
  std::erase_if(made.modules, [](const ModuleNames& names) {
    return names.ours.find(".mlp.") != std::string_view::npos;
  });
  made.modules.insert(made.modules.end(),
                      {{"transformer.h.N.experts.router",
                        {router},
                        Layout::as_is,
                        "model.layers.N.mlp.gate.weight"},
                       {"transformer.h.N.experts.c_fc", std::move(expand), Layout::as_is,
                        "model.layers.N.mlp.experts.gate_up_proj"},
                       {"transformer.h.N.experts.c_proj",
                        {reduce},
                        Layout::as_is,
                        "model.layers.N.mlp.experts.down_proj"}});
  return made;
}

Family mlp_expert_family(std::string_view type, std::string_view architecture,
                         nn::ModelOptions (*options)(const ConfigKeys&),
                         void (*keys)(const nn::ModelOptions&, core::OrderedJson&)) {
  return expert_family(
      type, architecture, options, keys, "model.layers.N.mlp.gate",
      {"model.layers.N.mlp.experts.E.gate_proj", "model.layers.N.mlp.experts.E.up_proj"},
      "model.layers.N.mlp.experts.E.down_proj");
}

}  // namespace

std::vector<const Family*> expert_families() {
  static const Family mixtral = expert_family("mixtral", "MixtralForCausalLM", mixtral_options,
                                              mixtral_keys, "model.layers.N.block_sparse_moe.gate",
                                              {"model.layers.N.block_sparse_moe.experts.E.w1",
                                               "model.layers.N.block_sparse_moe.experts.E.w3"},
                                              "model.layers.N.block_sparse_moe.experts.E.w2");
  static const Family qwen3_moe =
      mlp_expert_family("qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe_options, qwen3_moe_keys);
  static const Family olmoe =
      mlp_expert_family("olmoe", "OlmoeForCausalLM", olmoe_options, olmoe_keys);
  return {&mixtral, &qwen3_moe, &olmoe};
}

}  // namespace model
