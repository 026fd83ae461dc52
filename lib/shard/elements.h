#pragma once
// Converts elements from their bytes in a frame to the types that programs use.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shard/header.h"

namespace shard {

/// Decodes out.size() elements of type `dtype` from `in`. Throws Error{bad_data}, naming `name`,
/// for an invalid conversion: integers to float, floats to integers, u64 to u32.
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint32_t> out,
                     const std::string& name);
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint64_t> out,
                     const std::string& name);
void decode_elements(Dtype dtype, const std::byte* in, std::span<float> out,
                     const std::string& name);
/// Copies out.size() bytes.
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::byte> out,
                     const std::string& name);

/// Returns how many bytes of the file one item of a span<T> takes: the element's size, or 1 for
/// std::byte.
template <class T>
std::size_t stored_bytes(Dtype dtype) {
  return sizeof(T) == 1 ? 1 : size_of(dtype);
}

}  // namespace shard
