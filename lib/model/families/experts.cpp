// Relatives of Llama whose feed-forward networks are experts in every layer: Mixtral, Qwen 3 MoE
// and OLMoE. Keys that only training reads (load-balancing loss, router noise) are ignored.

#include "model/families/gated_family.h"

namespace model {
namespace {

nn::ModelOptions with_experts(const ConfigKeys& keys, const ClassRow& row, std::int64_t count,
    std::int64_t per_token, bool normalised) {
  auto options = gated_options(keys, row);
  options.transformer.experts = {count, per_token, normalised};
  if (count < 1) keys.unsupported("num_experts", std::to_string(count));
  for (const char* shared : {"shared_expert_intermediate_size", "n_shared_experts",
           "num_shared_experts", "shared_intermediate_size"})
    if (keys.whole(shared, 0) > 0) keys.unsupported(shared, std::to_string(keys.whole(shared, 0)));
  return options;
}

nn::ModelOptions mixtral_options(const ConfigKeys& keys, const ClassRow& row) {
  return with_experts(
      keys, row, keys.whole("num_local_experts", 8), keys.whole("num_experts_per_tok", 2), true);
}

void mixtral_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& experts = options.transformer.experts;
  put_gated(options, row, config);
  config["num_local_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
}

nn::ModelOptions olmoe_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = with_experts(keys, row, keys.required("num_experts"),
      keys.whole("num_experts_per_tok", 8), keys.truth("norm_topk_prob", false));
  if (keys.has("clip_qkv"))
    keys.unsupported("clip_qkv", fmt::format("{}", keys.number("clip_qkv", 0)));
  options.transformer.qk_norm = "whole";
  return options;
}

void olmoe_keys(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& experts = options.transformer.experts;
  put_gated(options, row, config);
  config["num_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  config["norm_topk_prob"] = experts.normalised;
}

// The format also allows layers without experts, and windows. No released model has either.
nn::ModelOptions qwen3_moe_options(const ConfigKeys& keys, const ClassRow& row) {
  auto options = with_experts(keys, row, keys.required("num_experts"),
      keys.whole("num_experts_per_tok", 8), keys.truth("norm_topk_prob", false));
  keys.expect("use_sliding_window", false, false);
  if (const auto step = keys.whole("decoder_sparse_step", 1); step != 1)
    keys.unsupported("decoder_sparse_step", std::to_string(step));
  if (!keys.wholes("mlp_only_layers").empty())
    keys.unsupported("mlp_only_layers", "layers without experts");
  options.transformer.qk_norm = "head";
  return options;
}

void qwen3_moe_keys(
    const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config) {
  olmoe_keys(options, row, config);
  config["num_local_experts"] = options.transformer.experts.count;
  config["intermediate_size"] = options.shape.ffn_width();  // required, although no layer uses it
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = core::OrderedJson::array();
  config["use_sliding_window"] = false;
}

// Replaces mlp's matrices by the experts' matrices.
Family expert_family(std::string_view type, Family::Options options, Family::Keys keys,
    std::string_view router, std::vector<std::string_view> expand, std::string_view reduce) {
  Family made = gated_family(type, options, keys);
  std::erase_if(made.modules,
      [](const ModuleNames& names) { return names.ours.find(".mlp.") != std::string_view::npos; });
  made.modules.insert(
      made.modules.end(), {{"transformer.h.N.experts.router", {router}, Layout::as_is,
                               "model.layers.N.mlp.gate.weight"},
                              {"transformer.h.N.experts.c_fc", std::move(expand), Layout::as_is,
                                  "model.layers.N.mlp.experts.gate_up_proj"},
                              {"transformer.h.N.experts.c_proj", {reduce}, Layout::as_is,
                                  "model.layers.N.mlp.experts.down_proj"}});
  return made;
}

Family mlp_expert_family(std::string_view type, Family::Options options, Family::Keys keys) {
  return expert_family(type, options, keys, "model.layers.N.mlp.gate",
      {"model.layers.N.mlp.experts.E.gate_proj", "model.layers.N.mlp.experts.E.up_proj"},
      "model.layers.N.mlp.experts.E.down_proj");
}

}  // namespace

std::vector<const Family*> expert_families() {
  static const Family mixtral = expert_family("mixtral", mixtral_options, mixtral_keys,
      "model.layers.N.block_sparse_moe.gate",
      {"model.layers.N.block_sparse_moe.experts.E.w1",
          "model.layers.N.block_sparse_moe.experts.E.w3"},
      "model.layers.N.block_sparse_moe.experts.E.w2");
  static const Family qwen3_moe = mlp_expert_family("qwen3_moe", qwen3_moe_options, qwen3_moe_keys);
  static const Family olmoe = mlp_expert_family("olmoe", olmoe_options, olmoe_keys);
  return {&mixtral, &qwen3_moe, &olmoe};
}

}  // namespace model
