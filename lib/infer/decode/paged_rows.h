#pragma once
// Per-token storage of rows during decoding (keys and values), in pages of kPageTokens tokens. Rows
// with a common prefix share pages until one of them writes.
// Applies a selection of rows to per-row data.

#include "core/base.h"

namespace infer {

/// Stores `parts` vectors of `width` numbers for every token: floats, or other numbers of `bytes`
/// bytes. Tokens of a row are numbered from 0.
/// Calls on slots of different rows may run concurrently, other calls may not.
class PagedRows {
 public:
  static constexpr std::int64_t kPageTokens = 16;

  PagedRows() = default;
  PagedRows(std::int64_t parts, std::int64_t width, std::size_t bytes = sizeof(float))
      : parts_(parts), width_(width), bytes_(bytes) {}

  std::size_t size() const { return rows_.size(); }
  std::int64_t width() const { return width_; }
  void open(std::int64_t rows) { rows_.assign(static_cast<std::size_t>(rows), {}); }
  void clear(std::size_t row) { rows_[row] = {}; }
  /// Replaces row i by the former row rows[i].
  void select(const std::vector<std::int64_t>& rows);
  /// Appends a token to the row, with slots that no other row shares; returns its number.
  std::int64_t append(std::size_t row);
  /// Removes the last `tokens` tokens of the row.
  void roll_back(std::size_t row, std::int64_t tokens);
  /// Drops tokens before number `first`.
  void drop(std::size_t row, std::int64_t first);
  /// Drops all but the `keep` newest tokens of every row.
  void forget(std::int64_t keep);

  std::int64_t begin(std::size_t row) const { return rows_[row].begin; }  ///< first stored token
  std::int64_t end(std::size_t row) const { return rows_[row].end; }

  /// Returns the page of a stored token: part `part` of its tokens, as slots (kPageTokens, width),
  /// or as the caller has filled it.
  template <class T = float> T* page(std::size_t row, std::int64_t token, std::int64_t part) const {
    auto& page = *rows_[row].pages[static_cast<std::size_t>(token / kPageTokens)];
    return reinterpret_cast<T*>(page.data()) + part * kPageTokens * width_;
  }

  /// Returns (width) floats: part `part` of a stored token.
  float* slot(std::size_t row, std::int64_t token, std::int64_t part) const {
    return page(row, token, part) + token % kPageTokens * width_;
  }

  /// Calls body(first, n) for pieces of tokens [begin, end) whose slots of a part are contiguous.
  template <class Body>
  static void each_piece(std::int64_t begin, std::int64_t end, const Body& body) {
    while (begin < end) {
      const auto next = std::min(end, (begin / kPageTokens + 1) * kPageTokens);
      body(begin, next - begin);
      begin = next;
    }
  }

 private:
  using Page = std::vector<std::byte>;  // (parts, kPageTokens, width)
  struct Row {
    std::vector<std::shared_ptr<Page>> pages;  // null for dropped pages
    std::int64_t begin = 0, end = 0;
  };

  std::int64_t parts_ = 0, width_ = 0;
  std::size_t bytes_ = sizeof(float);
  std::vector<Row> rows_;
};

/// Returns all[rows[0]], all[rows[1]], ...
template <class T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<std::int64_t>& rows) {
  return core::mapped<T>(rows, [&](auto row) { return all[static_cast<std::size_t>(row)]; });
}

}  // namespace infer
