#include "infer/generate/generator_stop.h"

#include <algorithm>

namespace infer {

bool StopText::push(std::string_view piece) {
  if (stopped_) return true;
  const std::size_t before = text_.size();
  text_ += piece;
  std::size_t first_end = text_.npos, start = 0;  // of the match that is complete first
  for (const auto& stop : *stops_) {
    const std::size_t reach = stop.size() - 1;
    const std::size_t at = text_.find(stop, before > reach ? before - reach : 0);
    if (at == text_.npos) continue;
    const std::size_t end = at + stop.size();
    if (end > first_end || (end == first_end && at > start)) continue;
    first_end = end;
    start = at;
  }
  if (first_end == text_.npos) return false;
  text_.resize(start);
  stopped_ = true;
  return true;
}

std::size_t StopText::settled() const {
  if (stopped_) return text_.size();
  const std::string_view text = text_;
  std::size_t held = 0;  // longest suffix of the text that begins a stop string
  for (const auto& stop : *stops_) {
    for (std::size_t n = std::min(stop.size() - 1, text.size()); n > held; --n) {
      if (text.substr(text.size() - n) != std::string_view(stop).substr(0, n)) continue;
      held = n;
      break;
    }
  }
  return text.size() - held;
}

}  // namespace infer
