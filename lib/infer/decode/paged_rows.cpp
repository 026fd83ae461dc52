#include "infer/decode/paged_rows.h"

namespace infer {

void PagedRows::select(const std::vector<std::int64_t>& rows) { rows_ = chosen(rows_, rows); }

std::int64_t PagedRows::append(std::size_t row) {
  Row& to = rows_[row];
  const auto token = to.end++, used = token % kPageTokens;
  if (used == 0) {
    to.pages.push_back(
        std::make_shared<Page>(bytes_ * static_cast<std::size_t>(parts_ * kPageTokens * width_)));
    return token;
  }
  if (auto& page = to.pages.back(); page.use_count() > 1) page = std::make_shared<Page>(*page);
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
