#pragma once
// What a GGUF file of llama.cpp's says of a model, as a family of transformers says it:
// config.json, and the weights under the names and in the layout that the family has.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/gguf/gguf_file.h"

namespace model {

/// The general.architecture of files that can be read.
std::vector<std::string> gguf_architectures();

/// The config.json. Its "eos_token_id" is a list: the tokens that end a text, those too that end
/// a turn of a chat. Throws Error{bad_config} for an architecture or a key that is not supported,
/// Error{bad_data} for a key that is missing or of a wrong type.
core::Json gguf_config(const GgufFile& file);

/// The generation_config.json: the ids of tokens alone.
core::OrderedJson gguf_generation_config(const GgufFile& file);

/// A tensor as a weight of the family. Rows of two dimensions.
struct GgufWeight {
  const GgufTensor* tensor;
  std::int64_t rotated_heads = 0;  ///< the rows of each head are in pairs; 0: as the family's
  bool one_more = false;           ///< the numbers are those of the family, and 1
};

/// All tensors by the family's names; one that has no such name keeps its own. Throws as
/// gguf_config().
std::map<std::string, GgufWeight> gguf_weights(const GgufFile& file);

/// Which row of the family's a row of llama.cpp's is, of heads of `width` rows whose neighbours it
/// turns: 2 i + t stands for t width/2 + i.
std::int64_t gguf_family_row(std::int64_t row, std::int64_t width);

/// The numbers in the family's layout; `out` has room for all.
void gguf_read(const GgufFile& file, const GgufWeight& weight, float* out);

}  // namespace model
