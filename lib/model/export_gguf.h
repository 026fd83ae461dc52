#pragma once
// Exports a model as a GGUF file for llama.cpp.

#include "model/folder.h"

namespace model {

struct GgufExport {
  std::string architecture;
  /// Notes for the user, one line each: omitted parts, tensors of another type.
  std::vector<std::string> notes;
};

/// Writes the model to `path` with its tokenizer, chat template and end tokens. `family` as in
/// ExportOptions; `dtype`: auto (the type of the model's files), float32, bfloat16, float16 or
/// q8_0. Vectors remain float32; with q8_0, matrices whose row length is no multiple of 32 become
/// float16. Reading the file gives the identical model and ids; otherwise Error{bad_config} names
/// what the format cannot represent. Throws Error{bad_data} for values outside the type's range.
GgufExport export_gguf(const Loaded& loaded, const std::string& family, const std::string& dtype,
    const std::string& path);

}  // namespace model
