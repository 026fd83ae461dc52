#include "task/story_openings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace task {
namespace {

/// Returns the length of the words that both lines begin with.
std::size_t common_words(std::string_view a, std::string_view b) {
  const auto common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return a.substr(0, static_cast<std::size_t>(common)).rfind(' ') + 1;  // npos + 1 is 0
}

}  // namespace

StoryOpenings::StoryOpenings(std::vector<std::string> lines) : lines_(std::move(lines)) {
  std::set<std::string_view> before;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::string_view line = lines_[i];
    const auto [at, fresh] = before.insert(line);
    if (!fresh) continue;
    // No earlier line has more words in common with it than its neighbours in alphabetical order.
    std::size_t known = 0;
    if (at != before.begin()) known = common_words(line, *std::prev(at));
    if (std::next(at) != before.end()) known = std::max(known, common_words(line, *std::next(at)));
    for (auto end = line.find(' ', known); end != line.npos; end = line.find(' ', end + 1))
      beginnings_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
  }
}

}  // namespace task
