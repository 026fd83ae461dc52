#pragma once
// Beginnings of lines, to be drawn from.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace task {

/// Of "One cold day": "One", "One cold" and "One cold day". They share the line's text, and take 8
/// bytes each beside it.
class StoryOpenings {
 public:
  StoryOpenings() = default;
  /// Of each line, whose words each have one space behind them, the beginnings that none before it
  /// has, the shortest first. At most 2^32 lines, of less than 4 GiB.
  explicit StoryOpenings(std::vector<std::string> lines);

  bool empty() const { return beginnings_.empty(); }
  std::size_t size() const { return beginnings_.size(); }
  /// Without the last space. A view into this.
  std::string_view operator[](std::size_t i) const {
    return std::string_view(lines_[beginnings_[i].line]).substr(0, beginnings_[i].bytes);
  }

 private:
  struct Beginning {
    std::uint32_t line, bytes;
  };
  std::vector<std::string> lines_;
  std::vector<Beginning> beginnings_;
};

}  // namespace task
