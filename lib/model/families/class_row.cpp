#include "model/families/class_row.h"

namespace model {
namespace {

constexpr const char* kTanh = "gelu_pytorch_tanh";

const std::vector<ClassRow>& rows() {
  static const std::vector<ClassRow> all = {
      {.type = "gpt2",
          .architecture = "GPT2LMHeadModel",
          .angles = Angles::none,
          .aliases = {{"hidden_size", "n_embd"}, {"num_hidden_layers", "n_layer"},
              {"num_attention_heads", "n_head"}, {"max_position_embeddings", "n_positions"}}},
      {.type = "llama",
          .architecture = "LlamaForCausalLM",
          .divided = true,
          .computes = {"attention_bias", "mlp_bias"}},
      {.type = "mistral",
          .architecture = "MistralForCausalLM",
          .context = 131072,
          .kv_heads = 8,
          .windows = Windows::every,
          .window = 4096,
          .computes = {"sliding_window", "layer_types"}},
      {.type = "qwen2",
          .architecture = "Qwen2ForCausalLM",
          .context = 32768,
          .kv_heads = 32,
          .windows = Windows::switched,
          .window = 4096,
          .computes = {"sliding_window", "layer_types"}},
      {.type = "qwen3",
          .architecture = "Qwen3ForCausalLM",
          .context = 32768,
          .kv_heads = 32,
          .d_head = 128,
          .windows = Windows::switched,
          .window = 4096,
          .computes = {"attention_bias", "sliding_window", "layer_types"}},
      {.type = "olmo2",
          .architecture = "Olmo2ForCausalLM",
          .epsilon = 1e-5,
          .computes = {"attention_bias"}},
      {.type = "phi3",
          .architecture = "Phi3ForCausalLM",
          .context = 4096,
          .epsilon = 1e-5,
          .angles = Angles::partial,
          .trained = 4096,
          .only_longrope = true,
          .windows = Windows::every,
          .computes = {"partial_rotary_factor", "sliding_window"}},
      {.type = "olmo3",
          .architecture = "Olmo3ForCausalLM",
          .epsilon = 1e-5,
          .angles = Angles::by_kind,
          .theta = 5e5,
          .local_theta = 5e5,
          .windows = Windows::periodic,
          .window = 4096,
          .period = 4,
          .computes = {"attention_bias", "sliding_window", "layer_types"}},
      {.type = "smollm3",
          .architecture = "SmolLM3ForCausalLM",
          .context = 32768,
          .kv_heads = 4,
          .tied = true,
          .theta = 2e6,
          .windows = Windows::unturned,
          .computes = {"attention_bias", "mlp_bias", "sliding_window", "layer_types",
              "no_rope_layers"}},
      {.type = "granite",
          .architecture = "GraniteForCausalLM",
          .computes = {"attention_bias", "mlp_bias", "attention_multiplier", "embedding_multiplier",
              "residual_multiplier", "logits_scaling"}},
      {.type = "ministral3",
          .architecture = "Ministral3ForCausalLM",
          .context = 262144,
          .kv_heads = 8,
          .d_head = 128,
          .epsilon = 1e-5,
          .windows = Windows::every,
          .computes = {"sliding_window", "llama_4_scaling_beta"}},
      {.type = "gpt_neox",
          .architecture = "GPTNeoXForCausalLM",
          .fixed_head = true,
          .divided = true,
          .epsilon = 1e-5,
          .activation = "gelu",
          .angles = Angles::partial,
          .share = 0.25,
          .theta_key = "rotary_emb_base",
          .share_key = "rotary_pct",
          .computes = {"attention_bias", "partial_rotary_factor", "rotary_pct", "rotary_emb_base"}},
      {.type = "mamba2", .architecture = "Mamba2ForCausalLM", .angles = Angles::none},
      {.type = "opt", .architecture = "OPTForCausalLM", .angles = Angles::none},
      {.type = "gpt_neo",
          .architecture = "GPTNeoForCausalLM",
          .angles = Angles::none,
          .aliases = {{"num_hidden_layers", "num_layers"}, {"num_attention_heads", "num_heads"}}},
      {.type = "gemma",
          .architecture = "GemmaForCausalLM",
          .context = 8192,
          .kv_heads = 16,
          .d_head = 256,
          .tied = true,
          .activation = kTanh,
          .computes = {"attention_bias"}},
      {.type = "gemma2",
          .architecture = "Gemma2ForCausalLM",
          .context = 8192,
          .kv_heads = 4,
          .d_head = 256,
          .divided = true,
          .tied = true,
          .activation_key = "hidden_activation",
          .activation = kTanh,
          .windows = Windows::periodic,
          .window = 4096,
          .period = 2,
          .computes = {"attention_bias", "sliding_window", "layer_types", "attn_logit_softcapping",
              "final_logit_softcapping", "query_pre_attn_scalar"}},
      {.type = "gemma3_text",
          .architecture = "Gemma3ForCausalLM",
          .context = 131072,
          .kv_heads = 4,
          .d_head = 256,
          .divided = true,
          .tied = true,
          .activation_key = "hidden_activation",
          .activation = kTanh,
          .angles = Angles::by_kind,
          .theta = 1e6,
          .local_theta = 1e4,
          .local_key = "rope_local_base_freq",
          .windows = Windows::periodic,
          .window = 4096,
          .period = 6,
          .computes = {"attention_bias", "sliding_window", "layer_types", "final_logit_softcapping",
              "query_pre_attn_scalar", "rope_local_base_freq"}},
      {.type = "phi",
          .architecture = "PhiForCausalLM",
          .epsilon = 1e-5,
          .activation = "gelu_new",
          .angles = Angles::partial,
          .share = 0.5,
          .computes = {"partial_rotary_factor", "qk_layernorm"}},
      {.type = "mixtral",
          .architecture = "MixtralForCausalLM",
          .context = 131072,
          .kv_heads = 8,
          .epsilon = 1e-5,
          .theta = 1e6,
          .windows = Windows::every,
          .aliases = {{"num_experts", "num_local_experts"}},
          .computes = {"sliding_window"}},
      {.type = "qwen3_moe",
          .architecture = "Qwen3MoeForCausalLM",
          .context = 32768,
          .kv_heads = 4,
          .width_key = "moe_intermediate_size",
          .aliases = {{"num_local_experts", "num_experts"}},
          .computes = {"attention_bias", "sliding_window", "norm_topk_prob"}},
      {.type = "olmoe",
          .architecture = "OlmoeForCausalLM",
          .context = 4096,
          .fixed_head = true,
          .epsilon = 1e-5,
          .aliases = {{"num_local_experts", "num_experts"}},
          .computes = {"attention_bias", "norm_topk_prob", "clip_qkv"}},
  };
  return all;
}

// A key that changes the function of some class, and the value at which it has no effect.
struct Switch {
  const char* key;
  core::Json off;
};

const std::vector<Switch>& switches() {
  static const std::vector<Switch> all = {{"attention_bias", false}, {"mlp_bias", false},
      {"partial_rotary_factor", 1}, {"rotary_pct", 1}, {"rotary_emb_base", nullptr},
      {"rope_local_base_freq", nullptr}, {"llama_4_scaling_beta", 0}, {"no_rope_layers", nullptr},
      {"sliding_window", nullptr}, {"layer_types", nullptr}, {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr}, {"query_pre_attn_scalar", nullptr},
      {"attention_multiplier", nullptr}, {"embedding_multiplier", 1}, {"residual_multiplier", 1},
      {"logits_scaling", 1}, {"qk_layernorm", false}, {"clip_qkv", nullptr},
      {"norm_topk_prob", true}};
  return all;
}

// Adds those of one object; rotary keys may be in objects of the config.json, or in theirs.
void add_ignored(
    const ClassRow& row, const core::Json& object, int deeper, std::vector<std::string>& found) {
  for (const auto& [key, off] : switches()) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null() || *at == off || row.has(key)) continue;
    auto text = fmt::format("\"{}\"", key);
    if (at->is_number() || at->is_boolean()) text += ": " + core::dump(*at);
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  }
  for (const char* inner : {"rope_scaling", "rope_parameters", "full_attention"})
    if (const auto at = object.find(inner); deeper > 0 && at != object.end() && at->is_object())
      add_ignored(row, *at, deeper - 1, found);
}

}  // namespace

bool ClassRow::has(std::string_view key) const {
  return std::find(computes.begin(), computes.end(), key) != computes.end();
}

const ClassRow& class_row(std::string_view type) {
  for (const auto& row : rows())
    if (row.type == type) return row;
  core::bug("no class of transformers is described for {}", type);
}

std::vector<std::string> ignored_keys(const ClassRow& row, const core::Json& config) {
  std::vector<std::string> found;
  add_ignored(row, config, 2, found);
  return found;
}

}  // namespace model
