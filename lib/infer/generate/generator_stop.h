#pragma once
// Stop strings on a text that comes in pieces.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

/// A text that ends before the first stop string that is complete in it, wherever the pieces were
/// cut. Copied with a hypothesis; `stops` must outlive it.
class StopText {
 public:
  explicit StopText(const std::vector<std::string>& stops) : stops_(&stops) {}
  /// Appends; true once a stop string is complete (more pieces change nothing then).
  bool push(std::string_view piece);

  const std::string& text() const { return text_; }
  /// Bytes of text() that no stop string can take back any more.
  std::size_t settled() const;
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string>* stops_;
  std::string text_;
  bool stopped_ = false;
};

}  // namespace infer
