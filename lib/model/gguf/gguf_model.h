#pragma once
// Converts a llama.cpp GGUF file to a transformers family: config.json, and weights with the
// family's names and layout.

#include "core/json.h"
#include "model/gguf/gguf_file.h"

namespace model {

/// Returns the supported values of general.architecture.
std::vector<std::string> gguf_architectures();

/// Returns the config.json. Its "eos_token_id" is a list of the tokens that end a text, including
/// those that end a chat turn. Throws Error{bad_config} for an unsupported architecture or key,
/// Error{bad_data} for a key that is missing or of a wrong type.
core::Json gguf_config(const GgufFile& file);

/// Returns the generation_config.json, with token ids only.
core::OrderedJson gguf_generation_config(const GgufFile& file);

/// A tensor as a weight of the family, with two-dimensional rows.
struct GgufWeight {
  const GgufTensor* tensor;
  std::int64_t rotated_heads = 0;  ///< heads whose rows are interleaved in pairs; 0: the family's
                                   ///< order
  bool one_more = false;           ///< the numbers are the family's plus 1
};

/// Returns all tensors by the family's names; tensors without one keep their names. Throws the
/// errors of gguf_config().
std::map<std::string, GgufWeight> gguf_weights(const GgufFile& file);

/// Returns the family's row for a llama.cpp row, for heads of `width` rows in which llama.cpp
/// rotates neighbours: 2 i + t maps to t width/2 + i.
std::int64_t gguf_family_row(std::int64_t row, std::int64_t width);
/// The inverse: returns llama.cpp's row for a row of the family.
std::int64_t gguf_file_row(std::int64_t row, std::int64_t width);

/// Reads rows [first, first + rows) in the family's layout; `out` has room for them. A tensor of
/// one dimension must be read as a whole. The system may drop the file's pages afterwards.
void gguf_read_rows(const GgufFile& file, const GgufWeight& weight, std::int64_t first,
    std::int64_t rows, float* out);

}  // namespace model
