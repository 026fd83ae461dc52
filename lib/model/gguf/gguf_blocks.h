#pragma once
// The types of a GGUF file's tensors: blocks of numbers with common scales, and the float32 that
// they stand for. https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h has the layouts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace model {

/// A type that can be read.
struct GgufType {
  std::uint32_t id;       ///< ggml's number
  std::string_view name;  ///< "Q4_K"
  std::size_t elements;   ///< of a block
  std::size_t bytes;      ///< of a block
  /// One block as `elements` numbers.
  void (*unpack)(const std::uint8_t* block, float* out);
};

/// The type of that number; null: it cannot be read.
const GgufType* gguf_type(std::uint32_t id);
/// Ggml's name of any type, "type 99" where it has none.
std::string gguf_type_name(std::uint32_t id);
/// The names of all types that can be read: "F32, F16, ...".
std::string gguf_type_names();

/// F32, F16, BF16 or Q8_0 by name; null for any other.
const GgufType* gguf_type_to_write(std::string_view name);
/// Whole blocks of a type that can be written, of finite numbers, as llama.cpp's own writer packs
/// them: rounded to the nearest, ties to even (F16, BF16); a block's largest number is 127 (Q8_0).
void gguf_pack(const GgufType& type, std::span<const float> numbers, std::byte* blocks);

/// `blocks` holds whole blocks; `out` has room for the elements of all of them.
void gguf_unpack(const GgufType& type, std::span<const std::byte> blocks, float* out);

}  // namespace model
