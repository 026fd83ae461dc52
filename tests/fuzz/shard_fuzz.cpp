// Whatever the bytes are, a shard's readers give elements or an Error{bad_data}, in little memory.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/io.h"
#include "shard/file.h"
#include "shard/reader.h"

namespace {

std::vector<std::byte> read_through(std::span<const std::byte> bytes, bool& whole) {
  std::vector<std::byte> all;
  try {
    core::MemorySource source(bytes);
    shard::Reader reader(source);
    std::vector<std::byte> piece(1000);
    while (const auto n = reader.read(std::span(piece)))
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
    whole = true;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
  return all;
}

std::vector<std::byte> read_at_random(std::span<const std::byte> bytes, bool& whole) {
  std::vector<std::byte> all;
  try {
    const shard::File file(std::make_shared<core::RandomMemory>(bytes));
    if (file.size() > (std::uint64_t{1} << 27)) return all;
    all.resize(file.size() * shard::size_of(file.header().dtype));
    file.read(0, std::span(all));
    whole = true;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  bool streamed = false, opened = false;
  const auto a = read_through(bytes, streamed), b = read_at_random(bytes, opened);
  // What the stream takes, random access takes too, with the same elements.
  if (streamed && (!opened || a != b)) std::abort();
  return 0;
}
