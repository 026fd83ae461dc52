#pragma once
// A family's config.json and tokenizer.json as metadata of a GGUF file: the way back of
// gguf_model.h and gguf_tokenizer.h.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/gguf/gguf_names.h"
#include "model/gguf/gguf_writer.h"

namespace model {

/// Null: llama.cpp has no architecture for it that is read here.
const GgufArchitecture* gguf_architecture_of(const std::string& model_type);

/// The keys of the architecture. What has no key is left out: whoever writes a file compares what
/// is read of it.
GgufMetadata gguf_keys(const GgufArchitecture& architecture, const core::Json& config);

/// Divisors of the angles (kGgufRopeFactors) of Llama 3's scaling; empty: of another, or none.
std::vector<float> gguf_rope_factors(const core::Json& config);

/// Where a tensor of the family's goes.
struct GgufPlace {
  std::string name;       ///< empty: nowhere
  bool turned = false;    ///< rows of heads in pairs (gguf_family_row)
  bool one_more = false;  ///< 1 is added to the numbers
};
GgufPlace gguf_place(const GgufArchitecture& architecture, const std::string& tensor);

/// Ids that a model knows beside its tokenizer; -1: none.
struct GgufIds {
  std::int64_t begin = -1, padding = -1;
  std::vector<std::int64_t> ends = {};  ///< the first three are written
};

/// The keys of a tokenizer, for a model of `rows` words; `json` is canonical. Throws
/// Error{bad_config} naming what of it llama.cpp has no form for: each candidate is read again, and
/// must split, merge and number texts as this one does. `remark` is told what it leaves out.
GgufMetadata gguf_tokenizer_keys(const std::string& json, std::int64_t rows, const GgufIds& ids,
                                 std::string& remark);

}  // namespace model
