#pragma once
// Tensor types of GGUF files: blocks of numbers with common scales, and their conversion to
// float32. Layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h

#include "core/base.h"

namespace model {

/// A readable type.
struct GgufType {
  std::uint32_t id;       ///< ggml's number
  std::string_view name;  ///< "Q4_K"
  std::size_t elements;   ///< in a block
  std::size_t bytes;      ///< in a block
  /// Unpacks one block to `elements` numbers.
  void (*unpack)(const std::uint8_t* block, float* out);
  /// Packs them, as gguf_pack(); null: not writable.
  void (*pack)(const float* in, std::byte* block) = nullptr;
};

/// Rows of a matrix in their blocks, in the file's order (see GgufWeight::rotated_heads).
struct GgufRows {
  std::shared_ptr<const void> file;  ///< keeps the bytes mapped
  const GgufType* type;
  std::span<const std::byte> bytes;
  std::int64_t rows, rotated_heads;
};

/// Returns the type with this number; null: not readable.
const GgufType* gguf_type(std::uint32_t id);
/// Returns ggml's name of any type, or "type 99" if unknown.
std::string gguf_type_name(std::uint32_t id);
/// Returns the names of all readable types: "F32, F16, ...".
std::string gguf_type_names();

/// Returns F32, F16, BF16, Q8_0, Q4_0 or Q4_1 by name; null for others.
const GgufType* gguf_type_to_write(std::string_view name);
/// Packs finite numbers into whole blocks of a writable type, as llama.cpp's writer does: rounds to
/// nearest, ties to even (F16, BF16); maps a block's largest magnitude to 127 (Q8_0), the number of
/// the largest magnitude to -8 (Q4_0), or the least and the largest number to 0 and 15 (Q4_1).
void gguf_pack(const GgufType& type, std::span<const float> numbers, std::byte* blocks);

/// Unpacks whole blocks; `out` has room for all elements.
void gguf_unpack(const GgufType& type, std::span<const std::byte> blocks, float* out);

}  // namespace model
