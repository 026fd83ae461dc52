// frequent SHARD...: the ten most frequent tokens of shards, with their texts. A program outside of
// Tessera that uses its libraries: CMakeLists.txt beside it finds them.

#include <algorithm>
#include <iostream>
#include <vector>

#include "core/error.h"
#include "core/printable.h"
#include "shard/dataset.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

int main(int argc, char** argv) try {
  const shard::Dataset data({argv + 1, argv + argc});
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  std::vector<std::uint64_t> count(data.header().vocabulary), ids(count.size());
  std::vector<std::uint32_t> some;
  for (std::uint64_t at = 0; at < data.size(); at += some.size()) {
    some.resize(std::min<std::uint64_t>(1 << 16, data.size() - at));
    data.read(at, std::span(some));
    for (const auto id : some) ++count[id];
  }
  const auto tokenizer = text::parse_tokenizer(data.header().tokenizer, data.name());
  for (std::uint64_t id = 0; id < ids.size(); ++id) ids[id] = id;
  std::ranges::stable_sort(ids, std::greater(), [&](std::uint64_t id) { return count[id]; });
  ids.resize(std::min<std::size_t>(ids.size(), 10));
  for (const auto id : ids)
    std::cout << count[id] << '\t' << id << '\t' << core::printable(tokenizer->token(id)) << '\n';
} catch (const core::Error& error) {
  std::cerr << "frequent: " << core::printable(error.what()) << '\n';
  return static_cast<int>(error.code());
}
