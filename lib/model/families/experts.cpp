// Relatives of Llama whose feed-forward networks are experts in every layer: Mixtral, Qwen 3 MoE
// and OLMoE. Keys that only training reads (load-balancing loss, router noise) are ignored.

#include "model/families/family.h"

namespace model {
namespace {

// `count`: the key of the number of experts; absent: `otherwise`, or an error if that is 0.
void expert_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row,
    const char* count, std::int64_t otherwise, std::int64_t per_token) {
  auto& experts = options.transformer.experts;
  gated_keys(pairs, options, row);
  if (otherwise == 0) pairs.required(count, experts.count);
  else pairs(count, experts.count, otherwise);
  pairs("num_experts_per_tok", experts.per_token, per_token);
  if (pairs.to != nullptr) return;
  const ConfigKeys& keys = *pairs.from;
  experts.normalised = true;
  if (experts.count < 1) keys.unsupported("num_experts", std::to_string(experts.count));
  for (const char* shared : {"shared_expert_intermediate_size", "n_shared_experts",
           "num_shared_experts", "shared_intermediate_size"})
    if (keys.whole(shared, 0) > 0) keys.unsupported(shared, std::to_string(keys.whole(shared, 0)));
}

}  // namespace

void mixtral_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  expert_keys(pairs, options, row, "num_local_experts", 8, 2);
}

void olmoe_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  expert_keys(pairs, options, row, "num_experts", 0, 8);
  pairs("norm_topk_prob", options.transformer.experts.normalised, false);
  if (pairs.from != nullptr && pairs.from->has("clip_qkv"))
    pairs.from->unsupported("clip_qkv", fmt::format("{}", pairs.from->number("clip_qkv", 0)));
  options.transformer.qk_norm = "whole";
}

// The format also allows layers without experts, and windows. No released model has either.
void qwen3_moe_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  expert_keys(pairs, options, row, "num_experts", 0, 8);
  auto& experts = options.transformer.experts;
  pairs("norm_topk_prob", experts.normalised, false);
  if (pairs.to != nullptr) {
    (*pairs.to)["num_local_experts"] = experts.count;
    (*pairs.to)["intermediate_size"] = options.shape.ffn_width();  // required, though not used
  }
  std::int64_t step = 1;
  pairs("decoder_sparse_step", step, 1);
  if (pairs.to != nullptr) (*pairs.to)["mlp_only_layers"] = core::OrderedJson::array();
  else if (!pairs.from->wholes("mlp_only_layers").empty())
    pairs.from->unsupported("mlp_only_layers", "layers without experts");
  pairs.fixed("use_sliding_window", false);
  if (step != 1) pairs.from->unsupported("decoder_sparse_step", std::to_string(step));
  options.transformer.qk_norm = "head";
}

}  // namespace model
