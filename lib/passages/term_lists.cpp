#include "passages/term_lists.h"

#include <algorithm>

#include "core/error.h"

namespace passages {

void TermLists::add(std::vector<TermCount>& terms) {
  if (length_.size() == std::size_t{1} << 31)
    core::fail(core::Code::bad_data,
               "more than {} units; use longer segments, or parts of the data", length_.size());
  std::ranges::sort(terms, {}, &TermCount::term);
  std::uint32_t length = 0;
  for (const auto& [term, count] : terms) {
    if (term >= units_with_.size()) units_with_.resize(std::size_t{term} + 1);
    ++units_with_[term];
    length += count;
  }
  lists_.append(terms);
  begin_.push_back(lists_.size());
  length_.push_back(length);
  total_ += length;
}

}  // namespace passages
