// An index of Megatron's and its ids with any bytes give documents or an Error{bad_data}. The
// result does not depend on the division into calls. An input is the index's size (u32), the index,
// the ids.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "shard/megatron_file.h"

namespace {

using Numbers = std::vector<std::uint64_t>;

// Returns the ids of all documents, each preceded by its length, or nothing if the pair is refused.
std::optional<Numbers> pair_numbers(
    std::span<const std::byte> index_bytes, std::span<const std::byte> ids, std::size_t piece) {
  try {
    const core::RandomMemory memory(index_bytes);
    shard::MegatronIndex index(memory);
    core::MemorySource source(ids);
    shard::ArrayReader reader(source, index.type(), index.elements());
    Numbers all, buffer(piece);
    while (const auto length = index.next_document()) {
      all.push_back(*length);
      for (std::uint64_t left = *length; left > 0;) {
        const std::size_t n = std::min<std::uint64_t>(left, piece);
        if (reader.read(std::span(buffer).first(n)) != n) std::abort();
        all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
        left -= n;
      }
    }
    if (reader.read(std::span(buffer)) != 0) std::abort();
    if (index.elements() * index.type().bytes != ids.size()) std::abort();
    if (all.size() != index.elements() + index.documents()) std::abort();
    return all;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return std::nullopt;
  }
}

}  // namespace

FUZZ_TARGET(megatron_file)(const std::uint8_t* data, std::size_t size) {
  std::uint32_t index_bytes = 0;
  if (size < sizeof index_bytes) return;
  std::memcpy(&index_bytes, data, sizeof index_bytes);
  const auto rest = std::as_bytes(std::span(data, size)).subspan(sizeof index_bytes);
  const std::size_t cut = std::min<std::size_t>(index_bytes, rest.size());
  const auto few = pair_numbers(rest.first(cut), rest.subspan(cut), 3);
  if (few != pair_numbers(rest.first(cut), rest.subspan(cut), 500)) std::abort();
}
