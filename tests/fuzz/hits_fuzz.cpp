// A file of hits with any bytes gives valid hits or is refused. Writing and reading it again
// preserves it.

#include "core/error.h"
#include "core/hash.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "passages/hits_file.h"
#include "shard/layout.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

// The search of the corpus.
const passages::SearchOf kSearch{"0123", "document", 0, 9, 3, 0.9, 0.4};

core::Part read_found(std::span<const std::byte> bytes, passages::Hits& all) {
  core::MemorySource source(bytes);
  return passages::read_hits(source, kSearch, all);
}

}  // namespace

FUZZ_REPAIR(hits)(std::vector<std::byte>& bytes) {
  constexpr std::size_t kDigest = 16;
  if (bytes.size() < kDigest) return;
  bytes.resize(bytes.size() - kDigest);
  shard::layout::put(bytes, core::hash128(std::span<const std::byte>(bytes)));
}

FUZZ_TARGET(hits)(const std::uint8_t* data, std::size_t size) {
  passages::Hits all(kSearch.units, kSearch.top), again = all;
  try {
    const core::Part part = read_found(std::as_bytes(std::span(data, size)), all);
    const auto begin = part.begin(kSearch.units), end = part.end(kSearch.units);
    passages::Hits own(static_cast<std::uint32_t>(end - begin), kSearch.top);
    for (auto unit = begin; unit < end; ++unit)
      own.set(static_cast<std::uint32_t>(unit - begin), all.of(static_cast<std::uint32_t>(unit)));
    core::MemorySink sink;
    passages::write_hits(kSearch, part, own, sink);
    const core::Part same = read_found(sink.bytes, again);
    if (same.index != part.index || same.count != part.count) std::abort();
    for (std::uint32_t unit = 0; unit < kSearch.units; ++unit) {
      if (!std::ranges::equal(all.of(unit), again.of(unit))) std::abort();
      for (const auto& hit : all.of(unit))
        if (hit.unit >= kSearch.units || !(hit.score > 0)) std::abort();
    }
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::usage) std::abort();
  }
}
