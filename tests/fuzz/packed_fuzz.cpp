// A possibly compressed file of any bytes gives bytes or an Error{bad_data}, equal for pieces of
// any size.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "core/error.h"
#include "fuzz/target.h"
#include "shard/unpacked_source.h"

namespace {

// Returns the first decompressed bytes, or that they contain an error.
std::string unpacked(const std::string& file, std::size_t piece) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  constexpr std::uint64_t kMemory = std::uint64_t{4} << 20;
  std::string all;
  try {
    shard::UnpackedSource source(std::make_unique<core::MemorySource>(file), kMemory);
    std::string part(piece, 0);
    std::size_t n = 1;
    while (n > 0 && all.size() < kMost) {
      n = source.read(std::as_writable_bytes(std::span(part)));
      all.append(part, 0, n);
    }
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return "an error";
  }
  return all.substr(0, std::min(all.size(), kMost));
}

}  // namespace

FUZZ_TARGET(packed)(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  const std::string whole = unpacked(file, 1 << 16), pieces = unpacked(file, 97);
  // A damaged file may give an error before or after the requested bytes.
  if (whole != pieces && whole != "an error" && pieces != "an error") std::abort();
}
