#include "store/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>

#include "core/error.h"
#include "core/io.h"

namespace store {
namespace {

using core::Code;
using core::fail;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 64 << 10;
constexpr std::size_t kMostDimensions = 8;

// The dict: keys in any order, with NumPy's own spelling of the values.
class DictParser {
 public:
  DictParser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        header.descr = quoted();
      } else if (key == "fortran_order" && !order) {
        order = true;
        skip_spaces();
        if (!take_word("False")) {
          if (take_word("True")) bad("it is in Fortran order");
          bad("its header is damaged");
        }
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        bad("its header is damaged");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size() || !descr || !order || !shape) bad("its header is damaged");
    return header;
  }

 private:
  [[noreturn]] void bad(std::string_view what) const {
    fail(Code::bad_data, "{}: no array that can be used: {}", origin_, what);
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad("its header is damaged");
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) bad("its header is damaged");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::uint64_t value = 0;
      const char* end = text_.data() + text_.size();
      const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
      if (error != std::errc() || values.size() == kMostDimensions) bad("its shape is damaged");
      at_ = static_cast<std::size_t>(rest - text_.data());
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
};

// Elements of the shape, if they and their bytes are below 2^63.
bool fits(const NpyHeader& header) {
  std::uint64_t bytes = npy_element_bytes(header.descr);
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (const std::uint64_t n : header.shape) {
    if (n != 0 && bytes > kMost / n) return false;
    bytes *= n;
  }
  return true;
}

std::vector<std::uint64_t> shape_of(std::uint64_t rows, std::uint64_t width, bool matrix) {
  return matrix ? std::vector<std::uint64_t>{rows, width} : std::vector<std::uint64_t>{rows};
}

void expect_array(const NpyHeader& header, std::string_view descr, std::uint64_t rows,
                  std::uint64_t width, bool matrix, const std::string& name) {
  const bool same = header.descr == descr && header.shape.size() == (matrix ? 2U : 1U) &&
                    header.shape[0] >= rows && (!matrix || header.shape[1] == width);
  if (!same)
    fail(Code::bad_data, "{}: it has type '{}' and shape ({}) where '{}' and ({}) belong", name,
         header.descr, fmt::join(header.shape, ", "), descr,
         fmt::join(shape_of(rows, width, matrix), ", "));
}

}  // namespace

std::size_t npy_element_bytes(std::string_view descr) {
  return descr == "<f2" ? 2 : descr == "<i4" ? 4 : descr == "<i8" ? 8 : 0;
}

NpyHeader parse_npy_header(std::span<const std::byte> front, const std::string& origin) {
  const std::string_view text(reinterpret_cast<const char*>(front.data()), front.size());
  if (!text.starts_with(kMagic) || text.size() < 12)
    fail(Code::bad_data, "{}: no .npy file: it does not begin as one", origin);
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(front[i]); };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    fail(Code::bad_data, "{}: .npy version {}.{}; 1.0 to 3.0 are known", origin, major, byte(7));
  const std::size_t begin = major == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kLongestHeader || begin + length > text.size())
    fail(Code::bad_data, "{}: its header is cut short or damaged", origin);
  NpyHeader header = DictParser(text.substr(begin, length), origin).parse();
  header.data_offset = begin + length;
  if (npy_element_bytes(header.descr) == 0)
    fail(Code::bad_data, "{}: elements of type '{}'; '<f2', '<i4' and '<i8' are known", origin,
         header.descr);
  if (header.data_offset % 8 != 0)
    fail(Code::bad_data, "{}: its elements begin at byte {}, which is no multiple of 8", origin,
         header.data_offset);
  if (!fits(header)) fail(Code::bad_data, "{}: its shape is damaged", origin);
  return header;
}

std::string format_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape) {
  std::string header(kMagic);
  const std::size_t length = kNpyHeaderBytes - 10;
  header += {'\1', '\0', static_cast<char>(length), '\0'};
  header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                        fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  header.resize(kNpyHeaderBytes - 1, ' ');
  return header + '\n';
}

NpyArray::NpyArray(const std::string& path, std::string_view descr, std::uint64_t rows,
                   std::uint64_t width, bool matrix)
    : file_(path) {
  const auto front = file_.bytes();
  const NpyHeader header = parse_npy_header(front, path);
  expect_array(header, descr, rows, width, matrix, path);
  offset_ = header.data_offset;
  elements_ = rows * width;
  const std::uint64_t bytes = elements_ * npy_element_bytes(descr);
  if (front.size() - offset_ < bytes)
    fail(Code::bad_data, "{}: cut short: {} bytes where {} belong", path, front.size(),
         offset_ + bytes);
}

NpyWriter::NpyWriter(const std::string& path, std::string_view descr, std::uint64_t rows,
                     std::uint64_t width, bool matrix)
    : name_(path),
      descr_(descr),
      rows_(rows),
      width_(width),
      row_bytes_(width * npy_element_bytes(descr)),
      matrix_(matrix) {
  if (rows > 0) {
    const NpyArray there(path, descr, rows, width, matrix);
    if (there.data_offset() != kNpyHeaderBytes)
      fail(Code::bad_data, "{}: its header is not this program's; it cannot grow", path);
  }
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (rows == 0 ? O_TRUNC : 0), 0666);
  if (fd_ < 0) fail(Code::cannot_create, "{}: {}", path, core::error_text(errno));
  try {
    write_header();  // before rows that an interruption left go: it may have counted them
    if (::ftruncate(fd_, static_cast<off_t>(kNpyHeaderBytes + rows * row_bytes_)) != 0)
      fail(Code::io, "{}: {}", path, core::error_text(errno));
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

NpyWriter::~NpyWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void NpyWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(Code::io, "{}: {}", name_, core::error_text(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void NpyWriter::sync() {
  if (::fsync(fd_) != 0) fail(Code::io, "{}: {}", name_, core::error_text(errno));
}

void NpyWriter::write(std::span<const std::byte> rows) {
  write_at(kNpyHeaderBytes + rows_ * row_bytes_, rows);
  rows_ += rows.size() / row_bytes_;
}

void NpyWriter::write_header() {
  const std::string header = format_npy_header(descr_, shape_of(rows_, width_, matrix_));
  write_at(0, std::as_bytes(std::span(header)));
}

void NpyWriter::commit() {
  sync();
  write_header();
  sync();
}

}  // namespace store
