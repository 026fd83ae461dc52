#include "core/npy_header.h"

#include <charconv>

namespace core {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxText = 64 << 10;
constexpr std::size_t kMaxDimensions = 32;
constexpr std::size_t kAlignment = 64;

[[noreturn]] void damaged(const std::string& origin, std::string_view what) {
  bad_data("{}: damaged .npy header: {}", origin, what);
}

// Parses the dict as NumPy writes it: keys and types in quotes, True or False, a tuple of numbers.
class Dict {
 public:
  Dict(std::string_view text, const std::string& origin) : rest_(text), origin_(origin) {}

  NpyHeader parse() {
    NpyHeader header;
    unsigned seen = 0;
    need("{");
    while (!take("}")) {
      const std::string_view key = quoted();
      need(":");
      const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0 || (seen & bit) != 0) damaged(origin_, "an unknown key");
      seen |= bit;
      if (bit == 1) header.descr = quoted();
      if (bit == 2 && !(header.fortran_order = take("True"))) need("False");
      if (bit == 4) header.shape = numbers();
      if (take(",")) continue;
      need("}");
      break;
    }
    if (seen != 7) damaged(origin_, "descr, fortran_order or shape is missing");
    skip_space();
    if (!rest_.empty()) damaged(origin_, "data after the dict");
    return header;
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool take(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view word) {
    if (!take(word)) damaged(origin_, fmt::format("'{}' expected", word));
  }
  std::string_view quoted() {
    const std::string_view mark = take("\"") ? "\"" : "'";
    if (mark == "'") need("'");
    const std::size_t end = rest_.find(mark);
    if (end == rest_.npos) damaged(origin_, "an unterminated string");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> all;
    need("(");
    while (!take(")")) {
      skip_space();
      std::uint64_t n = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (error != std::errc{}) damaged(origin_, "a dimension that is not a 64-bit number");
      if (all.size() == kMaxDimensions) damaged(origin_, "too many dimensions");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      all.push_back(n);
      if (take(",")) continue;
      need(")");
      break;
    }
    return all;
  }

  std::string_view rest_;
  const std::string& origin_;
};

}  // namespace

std::uint64_t NpyHeader::elements(std::size_t element_bytes, const std::string& origin) const {
  const std::uint64_t most =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / element_bytes;
  std::uint64_t n = 1;
  for (const std::uint64_t dimension : shape) {
    if (dimension > most / std::max<std::uint64_t>(n, 1))
      bad_data("{}: its shape ({}) is larger than any file", origin, fmt::join(shape, ", "));
    n *= dimension;
  }
  return n;
}

bool is_npy(std::span<const std::byte> start) {
  return start.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), start.begin(),
             [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& origin) {
  if (!is_npy(start)) bad_data("{}: not a .npy file", origin);
  const auto byte = [&](std::size_t i) {
    if (i >= start.size()) bad_data("{}: cut short in its .npy header", origin);
    return static_cast<std::size_t>(start[i]);
  };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    bad_data(
        "{}: .npy version {}.{} is not supported; versions 1.0 to 3.0 are", origin, major, byte(7));
  const std::size_t begin = major == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxText) damaged(origin, fmt::format("a text of {} bytes", length));
  if (length > start.size() - std::min(begin, start.size()))
    bad_data("{}: cut short in its .npy header", origin);
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + begin, length);
  NpyHeader header = Dict(text, origin).parse();
  header.data_offset = begin + length;
  return header;
}

std::string format_npy_header(std::string_view descr, std::span<const std::uint64_t> shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
      descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t before = kMagic.size() + 4;
  dict.resize((before + dict.size() + kAlignment) / kAlignment * kAlignment - before - 1, ' ');
  dict += '\n';
  std::string out(kMagic);
  out += {'\1', '\0', static_cast<char>(dict.size() & 0xFF), static_cast<char>(dict.size() >> 8)};
  return out + dict;
}

}  // namespace core
