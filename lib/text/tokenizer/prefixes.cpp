#include "text/tokenizer/prefixes.h"

namespace text {

Prefixes::Prefixes(const Vocabulary& vocabulary, std::vector<std::uint32_t> ids) {
  const auto token = [&](std::size_t i) { return vocabulary.token(ids[i]); };
  std::ranges::sort(ids, {}, [&](std::uint32_t id) { return vocabulary.token(id); });
  struct Range {
    std::size_t low, high, depth;  // in ids: the tokens of a node, which share `depth` bytes
  };
  std::vector<Range> ranges{{0, ids.size(), 0}};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto [low, high, depth] = ranges[i];
    longest_ = depth;
    if (low < high && token(low).size() == depth) nodes_[i].id = ids[low++];
    nodes_[i].first = static_cast<std::uint32_t>(nodes_.size());
    for (std::size_t end = low; low < high; low = end, ++nodes_[i].count) {
      const char byte = token(low)[depth];
      while (end < high && token(end)[depth] == byte) ++end;
      nodes_.push_back({.byte = static_cast<std::uint8_t>(byte)});
      ranges.push_back({low, end, depth + 1});
    }
  }
}

}  // namespace text
