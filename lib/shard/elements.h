#pragma once
// Elements between their bytes in a frame and the types that programs use.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shard/header.h"

namespace shard {

/// out.size() elements of type `dtype` at `in`. Throws Error{bad_data} naming `name` if they do not
/// fit: integers read as float or the reverse, u64 as u32.
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint32_t> out,
                     const std::string& name);
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint64_t> out,
                     const std::string& name);
void decode_elements(Dtype dtype, const std::byte* in, std::span<float> out,
                     const std::string& name);
/// A copy of out.size() bytes.
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::byte> out,
                     const std::string& name);

/// How many bytes in the file one item of a span<T> stands for: the element's; 1 of std::byte.
template <class T>
std::size_t stored_bytes(Dtype dtype) {
  return sizeof(T) == 1 ? 1 : size_of(dtype);
}

}  // namespace shard
