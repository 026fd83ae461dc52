#include "shard/input.h"

#include <algorithm>
#include <cstring>

namespace shard {
namespace {

constexpr std::size_t kLargestRead = 128 << 10;

}  // namespace

std::span<const std::byte> Input::peek(std::size_t n) {
  if (end_ - begin_ < n) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < n + piece_) buffer_.resize(n + piece_);
    piece_ = std::min(2 * piece_, kLargestRead);
    while (end_ < n) {
      const std::size_t got = source_.read(std::span(buffer_).subspan(end_));
      if (got == 0) break;
      end_ += got;
    }
  }
  return std::span(buffer_).subspan(begin_, end_ - begin_);
}

void Input::consume(std::size_t n) {
  hash_.update(std::span(buffer_).subspan(begin_, n));
  begin_ += n;
  offset_ += n;
}

core::Bytes Input::take(std::size_t n) {
  core::Bytes bytes;
  while (bytes.size() < n) {
    const std::size_t want = std::min(n - bytes.size(), kLargestRead);
    const auto seen = peek(want);
    const std::size_t got = std::min(seen.size(), want);
    if (got == 0) break;
    bytes.insert(bytes.end(), seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(got));
    consume(got);
  }
  return bytes;
}

}  // namespace shard
