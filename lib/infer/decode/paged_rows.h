#pragma once
// What rows of text keep of each of their tokens while they are decoded: keys and values, in pages
// of kPageTokens tokens, which rows of a common past share until one of them writes.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace infer {

/// Of every token `parts` vectors of `width` floats. Tokens are numbered from 0 a row. Calls on
/// different rows' slots may run at once, all others not.
class PagedRows {
 public:
  static constexpr std::int64_t kPageTokens = 16;

  PagedRows() = default;
  PagedRows(std::int64_t parts, std::int64_t width) : parts_(parts), width_(width) {}

  std::size_t size() const { return rows_.size(); }
  std::int64_t width() const { return width_; }
  void open(std::int64_t rows) { rows_.assign(static_cast<std::size_t>(rows), {}); }
  void clear(std::size_t row) { rows_[row] = {}; }
  /// Row i becomes what row rows[i] was.
  void select(const std::vector<std::int64_t>& rows);
  /// A further token of the row, with slots that no other row reads; its number.
  std::int64_t append(std::size_t row);
  /// The row never had its last `tokens`.
  void take_back(std::size_t row, std::int64_t tokens);
  /// Tokens before number `first` are forgotten.
  void drop(std::size_t row, std::int64_t first);
  /// Every row holds at most its `keep` newest tokens.
  void forget(std::int64_t keep);

  std::int64_t begin(std::size_t row) const { return rows_[row].begin; }  ///< first token held
  std::int64_t end(std::size_t row) const { return rows_[row].end; }

  /// (width): part `part` of a token that is held.
  float* slot(std::size_t row, std::int64_t token, std::int64_t part) const {
    const auto page = static_cast<std::size_t>(token / kPageTokens);
    return rows_[row].pages[page]->data() + (part * kPageTokens + token % kPageTokens) * width_;
  }

  /// body(first, n) for pieces of tokens [begin, end) whose slots of a part stand one behind
  /// another.
  template <class Body>
  static void each_piece(std::int64_t begin, std::int64_t end, const Body& body) {
    while (begin < end) {
      const auto next = std::min(end, (begin / kPageTokens + 1) * kPageTokens);
      body(begin, next - begin);
      begin = next;
    }
  }

 private:
  using Page = std::vector<float>;  // (parts, kPageTokens, width)
  struct Row {
    std::vector<std::shared_ptr<Page>> pages;  // null where all is forgotten
    std::int64_t begin = 0, end = 0;
  };

  std::int64_t parts_ = 0, width_ = 0;
  std::vector<Row> rows_;
};

}  // namespace infer
