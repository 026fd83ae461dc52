#include "ngrams/suffix_sort.h"

#include <divsufsort.h>

namespace ngrams {

std::size_t sort_width(std::uint64_t types) {
  return types <= 1U << 8 ? 1 : types <= 1U << 16 ? 2 : types <= 1U << 24 ? 3 : 4;
}

std::size_t sort_bytes_per_token(std::uint64_t types) {
  return sort_width(types) * sizeof(saidx_t);
}

std::uint64_t most_sorted(std::uint64_t types) {
  return static_cast<std::uint64_t>(std::numeric_limits<saidx_t>::max()) / sort_width(types);
}

std::vector<std::uint32_t> sort_suffixes(
    std::span<const std::byte> text, std::size_t width, std::uint64_t own, std::uint32_t mark) {
  static_assert(sizeof(saidx_t) == sizeof(std::uint32_t));
  std::vector<std::uint32_t> places(text.size());
  const int failed = divsufsort(reinterpret_cast<const sauchar_t*>(text.data()),
      reinterpret_cast<saidx_t*>(places.data()), static_cast<saidx_t>(text.size()));
  if (failed != 0)
    core::fail(core::Code::out_of_memory, "not enough memory to sort {} bytes; lower --buffer-size",
        text.size());
  std::size_t kept = 0;
  for (const std::uint32_t byte : places) {
    const auto place = static_cast<std::uint32_t>(byte / width);
    if (byte % width == 0 && place < own && token_at(text, place, width) != mark)
      places[kept++] = place;
  }
  places.resize(kept);
  return places;
}

}  // namespace ngrams
