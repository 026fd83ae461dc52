// A token file of another program (.npy, llm.c's or nanoGPT's .bin) with any bytes gives numbers or
// an Error{bad_data}. The result does not depend on the division into calls.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "shard/array_file.h"

namespace {

template <class T>
bool read_numbers(shard::ArrayReader& reader, std::size_t piece, std::vector<T>& all) {
  std::vector<T> buffer(piece);
  for (std::size_t n = piece; n == piece;) {
    n = reader.read(std::span(buffer));
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return true;
}

// Returns the bytes of all numbers, or nothing if the file is refused.
std::optional<std::vector<double>> numbers(
    std::span<const std::byte> bytes, std::optional<shard::ArrayFormat> format, std::size_t piece) {
  try {
    core::MemorySource source(bytes);
    shard::ArrayReader reader(source, format);
    std::vector<std::uint64_t> ids;
    std::vector<float> floats;
    reader.is_float() ? read_numbers(reader, piece, floats) : read_numbers(reader, piece, ids);
    std::vector<double> all(floats.begin(), floats.end());
    for (const auto id : ids) all.push_back(static_cast<double>(id));
    return all;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return std::nullopt;
  }
}

}  // namespace

FUZZ_TARGET(array_file)(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const auto format :
      {std::optional<shard::ArrayFormat>{}, std::optional(shard::ArrayFormat::nanogpt)}) {
    const auto few = numbers(bytes, format, 7), many = numbers(bytes, format, 500);
    if (few != many) std::abort();
    if (format && few.has_value() != (size % 2 == 0)) std::abort();
  }
}
