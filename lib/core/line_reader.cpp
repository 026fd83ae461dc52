#include "core/line_reader.h"

#include <array>

#include "core/error.h"
#include "core/plain_text.h"

namespace core {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

}  // namespace

bool LineReader::ready() const { return ended_ || buffer_.find('\n', begin_) != buffer_.npos; }

std::string LineReader::origin() const { return fmt::format("{}:{}", source_->name(), line_); }

std::optional<std::string> LineReader::next() {
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (line_ == 0 && (ended_ || end != buffer_.npos)) expect_text(buffer_, source_->name());
    if (end != buffer_.npos || (ended_ && begin_ < buffer_.size())) {
      const std::size_t stop = std::min(end, buffer_.size());
      std::string line = buffer_.substr(begin_, stop - begin_);
      begin_ = std::min(stop + 1, buffer_.size());
      if (++line_ == 1) line.erase(0, line.size() - without_byte_order_mark(line).size());
      return line;
    }
    if (ended_) return std::nullopt;
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (buffer_.size() > kMaxLineBytes)
      fail(Code::bad_data, "{}:{}: a line longer than 64 MiB", source_->name(), line_ + 1);
    std::array<std::byte, 65536> piece;
    const std::size_t n = source_->read(piece);
    buffer_.append(reinterpret_cast<const char*>(piece.data()), n);
    ended_ = n == 0;
  }
}

}  // namespace core
