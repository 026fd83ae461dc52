#pragma once
// Converts a family's config.json and tokenizer.json to metadata of a GGUF file: the inverse of
// gguf_model.h and gguf_tokenizer.h.
// Writes GGUF files of version 3 sequentially (layout: gguf_file.h).
// llama.cpp architectures that correspond to transformers families, and the tensor names of both.

#include "core/io.h"
#include "core/json.h"
#include "model/gguf/gguf_blocks.h"

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
    GgufArchitecture{.name = "phi3", .model_type = "phi3"}};

/// Names of a module, or of a part, in both formats.
struct GgufName {
  std::string_view theirs, ours;
};
inline constexpr std::array kGgufNames = {GgufName{"token_embd", "model.embed_tokens"},
    GgufName{"output_norm", "model.norm"}, GgufName{"output", "lm_head"}};
inline constexpr std::array kGgufLayerNames = {GgufName{"attn_norm", "input_layernorm"},
    GgufName{"attn_q", "self_attn.q_proj"}, GgufName{"attn_k", "self_attn.k_proj"},
    GgufName{"attn_v", "self_attn.v_proj"}, GgufName{"attn_qkv", "self_attn.qkv_proj"},
    GgufName{"attn_output", "self_attn.o_proj"}, GgufName{"attn_q_norm", "self_attn.q_norm"},
    GgufName{"attn_k_norm", "self_attn.k_norm"}, GgufName{"ffn_gate", "mlp.gate_proj"},
    GgufName{"ffn_up", "mlp.up_proj"}, GgufName{"ffn_down", "mlp.down_proj"},
    GgufName{"ffn_norm", "post_attention_layernorm"}};
inline constexpr std::array kGgufSandwichNames = {GgufName{"ffn_norm", "pre_feedforward_layernorm"},
    GgufName{"post_attention_norm", "post_attention_layernorm"},
    GgufName{"post_ffw_norm", "post_feedforward_layernorm"}};

/// Divisors of the rotary angles.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";

using GgufValue = std::variant<bool, std::uint32_t, float, std::string, std::vector<std::string>,
    std::vector<std::int32_t>, std::vector<float>, std::vector<bool>>;
/// Metadata in the order of writing.
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// A tensor to write.
struct GgufNewTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< outermost dimension first
  const GgufType* type;             ///< rows consist of whole blocks
  std::size_t bytes() const;
};

/// Writes the file; calls numbers(i) for the elements of each tensor in turn. Throws Error{bug} for
/// rows that are not whole blocks, Error{io}.
void write_gguf(core::ByteSink& sink, const GgufMetadata& metadata,
    const std::vector<GgufNewTensor>& tensors,
    const std::function<std::vector<float>(std::size_t)>& numbers);

/// Returns the llama.cpp architecture of a family; null: unsupported.
const GgufArchitecture* gguf_architecture_of(const std::string& model_type);

/// Returns the metadata keys. Omits settings without a key: writers compare the file's content
/// after reading it back.
GgufMetadata gguf_keys(const GgufArchitecture& architecture, const core::Json& config);

/// Returns the divisors of the angles (kGgufRopeFactors) of Llama 3's scaling; empty for other or
/// no scaling.
std::vector<float> gguf_rope_factors(const core::Json& config);

/// Name and transformation of a family's tensor in the file.
struct GgufPlace {
  std::string name;       ///< empty: not stored
  bool turned = false;    ///< rows of heads are interleaved in pairs (gguf_family_row)
  bool one_more = false;  ///< 1 is added to the numbers
};
GgufPlace gguf_place(const GgufArchitecture& architecture, const std::string& tensor);

/// Token ids that a model defines beside its tokenizer; -1: none.
struct GgufIds {
  std::int64_t begin = -1, padding = -1;
  std::vector<std::int64_t> ends = {};  ///< the first three are written
};

/// Returns the keys of a tokenizer for a model of `rows` tokens; `json` is canonical. Throws
/// Error{bad_config} that names a property which llama.cpp cannot represent: each candidate is read
/// back and must split, merge and number texts identically. `remark` receives what is omitted.
GgufMetadata gguf_tokenizer_keys(
    const std::string& json, std::int64_t rows, const GgufIds& ids, std::string& remark);

}  // namespace model
