#pragma once
// Holds the beginnings of lines, from which openings are drawn.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace task {

/// StoryOpenings holds the beginnings of lines: for "One cold day" these are "One", "One cold" and
/// "One cold day". They share the line's text and take 8 bytes each in addition.
class StoryOpenings {
 public:
  StoryOpenings() = default;
  /// Takes the lines and lists the beginnings of each, shortest first, except those that an earlier
  /// line has. Each word of a line must be followed by one space. There may be at most 2^32 lines,
  /// each shorter than 4 GiB.
  explicit StoryOpenings(std::vector<std::string> lines);

  bool empty() const { return beginnings_.empty(); }
  std::size_t size() const { return beginnings_.size(); }
  /// Returns a view of a beginning without its last space.
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
