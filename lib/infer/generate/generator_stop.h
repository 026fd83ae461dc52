#pragma once
// Finds stop strings in a text that arrives in pieces.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

/// Text that ends before the first complete stop string, independent of piece boundaries. Copied
/// with a hypothesis; `stops` must outlive it.
class StopText {
 public:
  explicit StopText(const std::vector<std::string>& stops) : stops_(&stops) {}
  /// Appends a piece; returns true once a stop string is complete (further pieces have no effect).
  bool push(std::string_view piece);

  const std::string& text() const { return text_; }
  /// Returns the bytes of text() that no stop string can remove any more.
  std::size_t settled() const;
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string>* stops_;
  std::string text_;
  bool stopped_ = false;
};

}  // namespace infer
