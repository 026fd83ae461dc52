#include "shard/documents_codec.h"

#include "core/plain_text.h"
#include "shard/layout.h"

namespace shard {
namespace {

constexpr std::size_t kBoundaryBytes = 1 << 16;

void put_number(core::Bytes& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(std::byte(number | 0x80));
  out.push_back(std::byte(number));
}

// Decodes bytes one at a time and reports when a number is complete.
struct NumberReader {
  std::uint64_t value = 0;
  int shift = 0;
  enum class Result { more, done, bad };
  Result take(std::byte b) {
    const auto bits = static_cast<std::uint64_t>(b) & 0x7f;
    if (shift > 63 || (shift == 63 && bits > 1)) return Result::bad;
    value |= bits << shift;
    shift += 7;
    return (b & std::byte{0x80}) != std::byte{0} ? Result::more : Result::done;
  }
};

// Decompresses one frame and calls take(bytes) with its pieces. Returns false if it is damaged, or
// something follows it.
template <class Take> bool decompress(std::span<const std::byte> in, const Take& take) {
  const auto context = make_decompress_context();
  ZSTD_inBuffer source{in.data(), in.size(), 0};
  core::Bytes piece(kBoundaryBytes);
  for (;;) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t before = source.pos;
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &source);
    if (ZSTD_isError(left)) return false;
    take(std::span<const std::byte>(piece).first(out.pos));
    if (left == 0) return source.pos == source.size;
    if (out.pos == 0 && source.pos == before) return false;
  }
}

// Names compress well, but a decompression bomb is not a list of names.
std::uint64_t most_name_bytes(std::size_t compressed) {
  return (std::uint64_t{4} << 20) + 256 * std::uint64_t{compressed};
}

}  // namespace

void FrameEncoder::flush() {
  if (raw_.size() >= kBoundaryBytes) compress(false);
}

void FrameEncoder::compress(bool last) {
  ZSTD_inBuffer in{raw_.data(), raw_.size(), 0};
  for (;;) {
    const std::size_t at = out_.size();
    out_.resize(at + kBoundaryBytes);
    ZSTD_outBuffer out{out_.data() + at, kBoundaryBytes, 0};
    const std::size_t left =
        ZSTD_compressStream2(context_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    out_.resize(at + out.pos);
    if (ZSTD_isError(left)) core::bug("zstd cannot compress: {}", ZSTD_getErrorName(left));
    if (last ? left == 0 : in.pos == in.size) break;
  }
  raw_.clear();
}

core::Bytes FrameEncoder::finish() {
  compress(true);
  return std::move(out_);
}

void DocumentsEncoder::append(std::uint64_t n_elements, std::uint64_t source_bytes,
    std::uint64_t source_words, std::string_view name, const std::vector<Span>* marks) {
  for (const auto number : {n_elements, source_bytes, source_words})
    put_number(numbers_.raw(), number);
  if (marks != nullptr) {
    put_number(numbers_.raw(), marks->size());
    std::uint64_t at = 0;
    for (const auto& mark : *marks) {
      put_number(numbers_.raw(), mark.begin - at);
      put_number(numbers_.raw(), mark.end - mark.begin);
      at = mark.end;
    }
  }
  numbers_.flush();
  ++documents_;
  if (name.empty()) return;
  if (name.size() > kMostNameBytes || name.find_first_of({"\n\0", 2}) != name.npos)
    core::bad_data("a document's name is a line of at most {} bytes, not {}", kMostNameBytes,
        core::printable(name.substr(0, 80)));
  names_.raw().insert(names_.raw().end(), documents_ - 1 - named_, std::byte{'\n'});
  layout::put(names_.raw(), name);
  names_.raw().push_back(std::byte{'\n'});
  named_ = documents_;
  names_.flush();
}

core::Bytes DocumentsEncoder::finish_names() {
  if (named_ == 0) return {};
  names_.raw().insert(names_.raw().end(), documents_ - named_, std::byte{'\n'});
  return names_.finish();
}

void Documents::append(const Documents& later, std::uint64_t elements) {
  const auto put = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  if (!names.empty() || !later.names.empty()) {
    names.resize(size());
    put(names, later.names);
    names.resize(size() + later.size());
  }
  for (const auto place : later.end) end.push_back(elements + place);
  put(bytes, later.bytes);
  put(words, later.words);
  for (const auto& mark : later.marks)
    marks.push_back({elements + mark.begin, elements + mark.end});
}

Documents decode_documents(std::span<const std::byte> in, std::uint64_t n_documents,
    std::uint64_t n_elements, bool marked, std::uint64_t most_marks, std::uint64_t offset,
    const std::string& name) {
  const auto bad = [&] { layout::damaged(name, offset, "the document boundaries"); };
  Documents documents;
  std::vector<std::uint64_t>* const columns[] = {
      &documents.end, &documents.bytes, &documents.words};
  std::uint64_t begin = 0, end = 0;  // of the current document
  std::uint64_t at = 0;              // end of its marks so far
  std::uint64_t left_marks = 0;
  NumberReader number;
  enum { kMarks = 3, kGap, kLength };
  int column = 0;
  const auto take = [&](std::uint64_t value) {
    if (column < kMarks) {
      if (column == 0) {
        if (documents.words.size() == n_documents || value > n_elements - end) bad();
        at = begin = end;
        value = end += value;
      }
      columns[column]->push_back(value);
      column = column + 1 == kMarks && !marked ? 0 : column + 1;
    } else if (column == kMarks) {
      if (value > end - begin || value > most_marks - documents.marks.size()) bad();
      left_marks = value;
      column = value > 0 ? kGap : 0;
    } else if (value > end - at || (column == kLength && value == 0)) {
      bad();
    } else if (column == kGap) {
      at += value;
      column = kLength;
    } else {
      documents.marks.push_back({at, at + value});
      at += value;
      column = --left_marks > 0 ? kGap : 0;
    }
  };
  const bool whole = decompress(in, [&](std::span<const std::byte> piece) {
    for (const std::byte b : piece) {
      const auto result = number.take(b);
      if (result == NumberReader::Result::more) continue;
      if (result == NumberReader::Result::bad) bad();
      take(number.value);
      number = {};
    }
  });
  if (!whole || column != 0 || number.shift != 0 || documents.size() != n_documents ||
      end != n_elements)
    bad();
  return documents;
}

std::vector<std::string> decode_names(std::span<const std::byte> in, std::uint64_t n_documents,
    std::uint64_t offset, const std::string& name) {
  const auto bad = [&] { layout::damaged(name, offset, "the names of documents"); };
  std::vector<std::string> names;
  std::string line;
  std::uint64_t bytes = 0;
  const bool whole = decompress(in, [&](std::span<const std::byte> piece) {
    if ((bytes += piece.size()) > most_name_bytes(in.size())) bad();
    for (const std::byte b : piece) {
      const char c = static_cast<char>(b);
      if (c != '\n') {
        line += c;
        if (c == '\0' || line.size() > kMostNameBytes) bad();
        continue;
      }
      if (names.size() == n_documents || core::utf8_length(line) != line.size()) bad();
      names.push_back(std::move(line));
      line.clear();
    }
  });
  if (!whole || !line.empty() || names.size() != n_documents) bad();
  return names;
}

}  // namespace shard
