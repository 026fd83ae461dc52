#include "passages/passage_cuts.h"

#include <algorithm>

namespace passages {

PassageCuts::PassageCuts(std::span<const std::uint64_t> ends, std::uint64_t length)
    : ends_(ends), length_(length) {
  first_.reserve(ends.size() + 1);
  std::uint64_t begin = 0;
  for (const auto end : ends) {
    const std::uint64_t tokens = end - begin, whole = tokens > 0 ? 1 : 0;
    first_.push_back(first_.back() +
                     (length == 0 ? whole : tokens / length + (tokens % length > 0 ? 1 : 0)));
    begin = end;
  }
}

PassageCuts::Place PassageCuts::place(std::uint64_t number) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), number);
  const auto document = static_cast<std::uint64_t>(after - first_.begin()) - 1;
  const std::uint64_t begin = begin_of(document) + (number - first_[document]) * length_,
                      end = ends_[document];
  return {document, begin, length_ == 0 || end - begin < length_ ? end : begin + length_};
}

}  // namespace passages
