#include "core/separated_pieces.h"

#include <algorithm>
#include <utility>

#include "core/plain_text.h"

namespace core {

SeparatedPieces::SeparatedPieces(ByteSource& source, std::string separator)
    : source_(source), separator_(std::move(separator)) {}

bool SeparatedPieces::next(std::string& piece) {
  constexpr std::size_t kRead = 1 << 20;
  for (;;) {
    const auto end = begun_ ? held_.find(separator_, searched_) : std::string::npos;
    if (end != std::string::npos) {
      piece.assign(held_, begin_, end - begin_);
      begin_ = searched_ = end + separator_.size();
      return true;
    }
    held_.erase(0, begin_);
    begin_ = 0;
    searched_ = held_.size() - std::min(held_.size(), separator_.size() - 1);
    if (ended_) {
      piece = std::exchange(held_, {});
      searched_ = 0;
      return !piece.empty();
    }
    const auto old = held_.size();
    held_.resize(old + kRead);
    const auto got = source_.read(std::as_writable_bytes(std::span(held_.data() + old, kRead)));
    held_.resize(old + got);
    ended_ = got == 0;
    if (!begun_ && (ended_ || held_.size() >= 512)) {
      begun_ = true;
      searched_ = 0;
      expect_text(held_, source_.name());
      held_.erase(0, held_.size() - without_byte_order_mark(held_).size());
    }
  }
}

}  // namespace core
