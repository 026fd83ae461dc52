#pragma once
// Splits documents into passages of a fixed number of tokens.

#include <cstdint>
#include <span>
#include <vector>

namespace passages {

/// PassageCuts numbers the passages consecutively. No passage crosses the end of a document; the
/// last passage of a document may be shorter. An empty document has none.
class PassageCuts {
 public:
  struct Place {
    std::uint64_t document;
    std::uint64_t begin, end;  ///< elements of the whole text
  };

  PassageCuts() = default;
  /// `ends` are the ends of the documents, ascending, and must outlive this object. A `length` of 0
  /// makes each document one passage.
  PassageCuts(std::span<const std::uint64_t> ends, std::uint64_t length);
  std::uint64_t size() const { return first_.back(); }
  /// Returns the position of passage `number`, which is below size().
  Place place(std::uint64_t number) const;
  /// Returns the passages [first, second) of a document.
  std::pair<std::uint64_t, std::uint64_t> of(std::uint64_t document) const {
    return {first_[document], first_[document + 1]};
  }
  std::uint64_t begin_of(std::uint64_t document) const {
    return document == 0 ? 0 : ends_[document - 1];
  }

 private:
  std::span<const std::uint64_t> ends_;
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> first_ = {0};  // first passage of each document, and the end
};

}  // namespace passages
