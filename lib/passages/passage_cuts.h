#pragma once
// Documents cut into passages of so many tokens.

#include <cstdint>
#include <span>
#include <vector>

namespace passages {

/// Passages are numbered through; none goes across the end of a document, the last of each is
/// shorter. An empty document has none.
class PassageCuts {
 public:
  struct Place {
    std::uint64_t document;
    std::uint64_t begin, end;  ///< elements of all the text
  };

  PassageCuts() = default;
  /// `ends`: of documents, ascending, must outlive it. `length` 0: a document is a passage.
  PassageCuts(std::span<const std::uint64_t> ends, std::uint64_t length);
  std::uint64_t size() const { return first_.back(); }
  /// The passage `number`, below size().
  Place place(std::uint64_t number) const;
  /// The passages [first, second) of a document.
  std::pair<std::uint64_t, std::uint64_t> of(std::uint64_t document) const {
    return {first_[document], first_[document + 1]};
  }
  std::uint64_t begin_of(std::uint64_t document) const {
    return document == 0 ? 0 : ends_[document - 1];
  }

 private:
  std::span<const std::uint64_t> ends_;
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> first_ = {0};  // passage of each document, and the end
};

}  // namespace passages
