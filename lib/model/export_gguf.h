#pragma once
// A model as a GGUF file of llama.cpp's.

#include <string>

#include "model/folder.h"

namespace model {

struct GgufExport {
  std::string architecture;
  /// What a user should know, a line each: what is left out, tensors of another type.
  std::vector<std::string> notes;
};

/// Writes the model to `path`, with its tokenizer, chat template and ends of a text. `family`: as
/// ExportOptions has it; `dtype`: auto (the type of the model's files), float32, bfloat16, float16,
/// or q8_0. Vectors stay float32, and so do all numbers of a row that q8_0's blocks of 32 do not
/// divide as float16. Reading the file gives the same model with the same ids, or Error{bad_config}
/// names what the format cannot say; throws Error{bad_data} for numbers beyond the type.
GgufExport export_gguf(const Loaded& loaded, const std::string& family, const std::string& dtype,
                       const std::string& path);

}  // namespace model
