#pragma once
// llama.cpp architectures that correspond to transformers families, and the tensor names of both.

#include "core/base.h"

namespace model {

struct GgufArchitecture {
  std::string_view name;
  std::string_view model_type;  // of transformers
  bool pairs = false;           // llama.cpp rotates neighbours, the family rotates halves of a head
  bool one_more = false;        // norms store 1 + the family's weight
  bool sandwich = false;        // sub-layers also have norms after them
};
inline constexpr std::array kGgufArchitectures = {
    GgufArchitecture{.name = "llama", .model_type = "llama", .pairs = true},
    GgufArchitecture{.name = "qwen2", .model_type = "qwen2"},
    GgufArchitecture{.name = "qwen3", .model_type = "qwen3"},
    GgufArchitecture{.name = "gemma", .model_type = "gemma", .one_more = true},
    GgufArchitecture{.name = "gemma2", .model_type = "gemma2", .one_more = true, .sandwich = true},
    GgufArchitecture{
        .name = "gemma3", .model_type = "gemma3_text", .one_more = true, .sandwich = true},
    GgufArchitecture{.name = "phi3", .model_type = "phi3"},
};

/// Names of a module, or of a part, in both formats.
struct GgufName {
  std::string_view theirs, ours;
};
inline constexpr std::array kGgufNames = {
    GgufName{"token_embd", "model.embed_tokens"},
    GgufName{"output_norm", "model.norm"},
    GgufName{"output", "lm_head"},
};
inline constexpr std::array kGgufLayerNames = {
    GgufName{"attn_norm", "input_layernorm"},
    GgufName{"attn_q", "self_attn.q_proj"},
    GgufName{"attn_k", "self_attn.k_proj"},
    GgufName{"attn_v", "self_attn.v_proj"},
    GgufName{"attn_qkv", "self_attn.qkv_proj"},
    GgufName{"attn_output", "self_attn.o_proj"},
    GgufName{"attn_q_norm", "self_attn.q_norm"},
    GgufName{"attn_k_norm", "self_attn.k_norm"},
    GgufName{"ffn_gate", "mlp.gate_proj"},
    GgufName{"ffn_up", "mlp.up_proj"},
    GgufName{"ffn_down", "mlp.down_proj"},
    GgufName{"ffn_norm", "post_attention_layernorm"},
};
inline constexpr std::array kGgufSandwichNames = {
    GgufName{"ffn_norm", "pre_feedforward_layernorm"},
    GgufName{"post_attention_norm", "post_attention_layernorm"},
    GgufName{"post_ffw_norm", "post_feedforward_layernorm"},
};

/// Divisors of the rotary angles.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";

}  // namespace model
