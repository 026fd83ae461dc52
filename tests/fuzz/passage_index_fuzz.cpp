// An index of passages with any bytes answers or is refused.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "fuzz/target.h"
#include "passages/passage_index.h"
#include "shard/layout.h"

namespace {

constexpr std::size_t kTail = 16;

void ask_passages(const passages::PassageIndex& index) {
  passages::PassageQueries queries(index);
  const auto words = queries.terms_of(std::string_view("The cats and rockets launch: cat, dog."));
  const auto some = index.passage(index.size() / 2, 20);
  const auto own = queries.terms_of(std::span(some));
  const passages::UnitRange without[] = {{0, index.size() / 2}};
  const passages::Bm25Query asked[] = {{words}, {own}, {own, without}};
  const auto hits = index.search(asked, 3);
  for (std::uint32_t query = 0; query < hits.queries(); ++query)
    for (const auto& hit : hits.of(query)) {
      if (hit.unit >= index.size() || !std::isfinite(hit.score)) std::abort();
      if (query == 2 && hit.unit < without[0].end) std::abort();
      if (index.cuts().place(hit.unit).document >= index.documents()) std::abort();
      index.text(hit.unit);
    }
  index.same_document(some);
}

}  // namespace

// Repairs the hashes of the arrays and of the facts.
FUZZ_REPAIR(passage_index)(std::vector<std::byte>& bytes) {
  if (bytes.size() < kTail) return;
  const std::size_t tail = bytes.size() - kTail;
  const auto json_bytes = shard::layout::get<std::uint64_t>(bytes, tail);
  if (json_bytes > tail) return;
  const std::size_t end = tail - json_bytes;
  auto facts =
      core::parse_json({reinterpret_cast<const char*>(bytes.data()) + end, json_bytes}, "", 4);
  if (!facts.is_object() || !facts.contains("arrays") || !facts["arrays"].is_array()) return;
  for (auto& array : facts["arrays"]) {
    const auto offset = core::get_at_most(array, "offset", end, "");
    const auto size = core::get_at_most(array, "bytes", end - offset, "");
    array["hash"] = core::hash128(std::span(bytes).subspan(offset, size)).hex();
  }
  facts.erase("hash");
  const auto text = core::dump(core::sealed(core::OrderedJson::parse(core::dump(facts))));
  const std::vector<std::byte> name(bytes.end() - 8, bytes.end());
  bytes.resize(end);
  shard::layout::put(bytes, text);
  shard::layout::put(bytes, std::uint64_t{text.size()});
  bytes.insert(bytes.end(), name.begin(), name.end());
}

FUZZ_TARGET(passage_index)(const std::uint8_t* data, std::size_t size) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines(size / 64 + 1);  // aligned like a mapping
  std::memcpy(lines.data(), data, size);
  try {
    ask_passages(passages::PassageIndex(std::span(lines[0].bytes, size), "fuzz"));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
