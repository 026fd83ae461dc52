#include "infer/decode/paged_rows.h"

namespace infer {

void PagedRows::select(const std::vector<std::int64_t>& rows) { rows_ = chosen(rows_, rows); }

std::int64_t PagedRows::append(std::size_t row) {
  Row& to = rows_[row];
  const auto token = to.end++, used = token % kPageTokens;
  const auto page_size = static_cast<std::size_t>(parts_ * kPageTokens * width_);
  if (used == 0) {
    to.pages.push_back(std::make_shared<Page>(page_size));
    return token;
  }
  auto& page = to.pages.back();
  if (page.use_count() == 1) return token;
  const auto own = std::make_shared<Page>(page_size);
  for (std::int64_t part = 0; part < parts_; ++part) {
    const auto from = part * kPageTokens * width_;
    std::copy_n(page->begin() + from, used * width_, own->begin() + from);
  }
  page = own;
  return token;
}

void PagedRows::roll_back(std::size_t row, std::int64_t tokens) {
  Row& of = rows_[row];
  of.end -= tokens;
  of.pages.resize(static_cast<std::size_t>((of.end + kPageTokens - 1) / kPageTokens));
}

void PagedRows::forget(std::int64_t keep) {
  for (std::size_t row = 0; row < rows_.size(); ++row) drop(row, rows_[row].end - keep);
}

void PagedRows::drop(std::size_t row, std::int64_t first) {
  Row& of = rows_[row];
  of.begin = std::max(of.begin, first);
  const auto gone = static_cast<std::size_t>(of.begin / kPageTokens);
  for (std::size_t i = std::min(gone, of.pages.size()); i > 0 && of.pages[i - 1]; --i)
    of.pages[i - 1].reset();
}

}  // namespace infer
