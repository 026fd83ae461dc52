// SeparatedPieces does not depend on how a stream arrives.

#include "core/file_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/rng.h"

namespace {

// Returns a few bytes at a time.
class Drops : public core::ByteSource {
 public:
  Drops(std::string text, std::size_t most) : text_(std::move(text)), most_(most) {}
  std::size_t read(std::span<std::byte> out) override {
    const auto n = std::min({out.size(), most_, text_.size() - at_});
    std::copy_n(reinterpret_cast<const std::byte*>(text_.data()) + at_, n, out.begin());
    at_ += n;
    return n;
  }
  const std::string& name() const override { return text_; }

 private:
  std::string text_;
  std::size_t most_, at_ = 0;
};

// Splits the whole text at once.
std::vector<std::string> plain(const std::string& text, const std::string& separator) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != text.npos;
       begin = end + separator.size())
    pieces.push_back(text.substr(begin, end - begin));
  if (begin < text.size()) pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace

DOCTEST_TEST_CASE("pieces are those of the whole text, however few bytes come at a time") {
  core::Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (auto n = rng.below(40); n > 0; --n) text += "aab#"[rng.below(4)];
    for (const std::string separator : {"#", "a#", "aab"}) {
      Drops source(text, 1 + rng.below(5));
      core::SeparatedPieces pieces(source, separator);
      std::vector<std::string> found;
      for (std::string piece; pieces.next(piece);) found.push_back(piece);
      DOCTEST_REQUIRE(found == plain(text, separator));
    }
  }
}
