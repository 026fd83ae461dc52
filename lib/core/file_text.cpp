#include "core/file_text.h"

#include "core/json_line.h"
#include "core/plain_text.h"

namespace core {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

}  // namespace

std::string read_file(const std::string& path, std::size_t limit) {
  const RandomFile file(path);
  if (file.size() > limit) bad_data("{}: larger than {} bytes", path, limit);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

Json read_json(const std::string& path, std::size_t limit) {
  const std::string text = read_file(path, limit);
  try {
    return parse_json(text, path);
  } catch (const Error&) {
    const MendedJson mended = mend_json(text, true);
    if (!mended.only_numbers()) throw;
    return parse_json(mended.text, path);
  }
}

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
      bad_data("{}:{}: a line longer than 64 MiB", source_->name(), line_ + 1);
    std::array<std::byte, 65536> piece;
    const std::size_t n = source_->read(piece);
    buffer_.append(reinterpret_cast<const char*>(piece.data()), n);
    ended_ = n == 0;
  }
}

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
