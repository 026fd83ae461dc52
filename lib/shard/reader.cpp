#include "shard/reader.h"

#include "shard/layout.h"
#include "shard/zstd_frame.h"

namespace shard {
namespace {

constexpr std::size_t kLargestRead = 128 << 10;

template <class Stored, class T> void widen(const std::byte* in, std::span<T> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored x;
    std::memcpy(&x, in + i * sizeof x, sizeof x);
    out[i] = x;
  }
}

[[noreturn]] void misfit(Dtype dtype, const char* wanted, const std::string& name) {
  core::bad_data("{}: has elements of type {}; expected {}", name, name_of(dtype), wanted);
}

template <class T>
void decode_integers(Dtype dtype, const std::byte* in, std::span<T> out, const std::string& name) {
  switch (dtype) {
    case Dtype::u8: return widen<std::uint8_t>(in, out);
    case Dtype::u16: return widen<std::uint16_t>(in, out);
    case Dtype::u32: return widen<std::uint32_t>(in, out);
    case Dtype::u64:
      if constexpr (sizeof(T) == 8) return widen<std::uint64_t>(in, out);
      misfit(dtype, "at most 32 bits", name);
    case Dtype::f32: misfit(dtype, "integers", name);
  }
}

}  // namespace

struct Reader::Impl {
  explicit Impl(core::ByteSource& source) : input(source), name(source.name()) {
    const std::size_t size = layout::check_start(input.peek(layout::kVersionEnd), name);
    const auto frame = take_frame(size, "the header");
    header = layout::decode_header(frame, name);
    element_bytes = size_of(header.dtype);
    context = make_decompress_context();
  }

  // Reads a whole skippable frame of `size` bytes.
  core::Bytes take_frame(std::size_t size, std::string_view what) {
    auto frame = input.take(size);
    if (frame.size() < size) layout::cut_short(name, input.offset(), what);
    table.push_back({static_cast<std::uint32_t>(size), 0});
    return frame;
  }

  std::size_t skippable_size(std::uint32_t magic, std::string_view what) {
    const auto head = input.peek(layout::kFrameHeadBytes);
    if (head.size() < layout::kFrameHeadBytes)
      layout::cut_short(name, input.offset() + head.size(), what);
    if (layout::get<std::uint32_t>(head, 0) != magic) layout::damaged(name, input.offset(), what);
    return layout::kFrameHeadBytes + layout::get<std::uint32_t>(head, 4);
  }

  // Decompresses the next data frame, or reads to the end. Returns false at the end.
  bool next_frame() {
    if (ended) return false;
    const auto head = input.peek(4);
    if (head.size() < 4)
      layout::cut_short(name, input.offset() + head.size(), "the elements, without a trailer");
    if (layout::get<std::uint32_t>(head, 0) != layout::kZstdMagic) {
      read_end();
      return false;
    }
    auto in = input.peek(kLookBytes);
    FrameView frame = look_at_frame(in);
    if (frame.state == FrameView::State::partial) {
      in = input.peek(ZSTD_compressBound(layout::kMaxRawBytes));
      frame = look_at_frame(in);
    }
    if (frame.state == FrameView::State::partial &&
        in.size() < ZSTD_compressBound(layout::kMaxRawBytes))
      layout::cut_short(name, input.offset() + in.size(), "the elements");
    if (frame.state != FrameView::State::whole)
      layout::damaged(name, input.offset(), "a data frame");
    raw.resize(frame.raw);
    decompress_frame(context.get(), in.first(frame.compressed), raw, header, input.offset(), name);
    input.consume(frame.compressed);
    table.push_back(
        {static_cast<std::uint32_t>(frame.compressed), static_cast<std::uint32_t>(frame.raw)});
    n_elements += frame.raw / element_bytes;
    at = 0;
    return true;
  }

  void read_end() {
    const core::Digest hash = input.hash();
    const std::uint64_t start = input.offset();
    const std::size_t size = skippable_size(layout::kTrailerMagic, "a frame");
    const auto frame = take_frame(size, "the trailer");
    Content content;
    trailer = layout::decode_trailer(frame, header, start, name, content);
    if (trailer.file_hash != hash) layout::damaged(name, 0, "a byte before the trailer");
    if (trailer.elements != n_elements) layout::damaged(name, start, "the number of elements");

    const auto expected = layout::encode_seek_table(table);
    const std::uint64_t table_start = input.offset();
    if (input.peek(1).empty()) layout::cut_short(name, table_start, "the seek table");
    const auto found = input.take(expected.size());
    if (!std::equal(found.begin(), found.end(), expected.begin()))
      layout::damaged(name, table_start, "the seek table");
    if (found.size() < expected.size()) layout::cut_short(name, input.offset(), "the seek table");
    if (!input.peek(1).empty())
      core::bad_data(
          "{}: has data after the end of the shard, at byte {}; to join shards, use shard merge",
          name, input.offset());
    ended = true;
  }

  template <class T> std::size_t read(std::span<T> out) {
    const std::size_t item_bytes = stored_bytes<T>(header.dtype);
    std::size_t done = 0;
    while (done < out.size()) {
      if (at == raw.size() && !next_frame()) {
        raw.clear();
        at = 0;
        break;
      }
      const std::size_t n = std::min(out.size() - done, (raw.size() - at) / item_bytes);
      decode_elements(header.dtype, raw.data() + at, out.subspan(done, n), name);
      at += n * item_bytes;
      done += n;
    }
    return done;
  }

  // Suffices for a frame that the Writer made.
  static constexpr std::size_t kLookBytes = layout::kRawBytes + (4 << 10);

  Input input;
  std::string name;
  Header header;
  std::size_t element_bytes = 1;
  DecompressContext context;
  core::Bytes raw;     // of the current frame
  std::size_t at = 0;  // bytes already read from `raw`
  std::uint64_t n_elements = 0;
  std::vector<layout::FrameSize> table;
  Trailer trailer;
  bool ended = false;
};

Reader::Reader(core::ByteSource& source) : impl_(std::make_unique<Impl>(source)) {}
Reader::~Reader() = default;

const Header& Reader::header() const { return impl_->header; }
const std::string& Reader::name() const { return impl_->name; }
std::size_t Reader::read(std::span<std::uint32_t> out) { return impl_->read(out); }
std::size_t Reader::read(std::span<std::uint64_t> out) { return impl_->read(out); }
std::size_t Reader::read(std::span<float> out) { return impl_->read(out); }
std::size_t Reader::read(std::span<std::byte> out) {
  return impl_->read(out.first(out.size() / impl_->element_bytes * impl_->element_bytes));
}

const Trailer& Reader::trailer() const {
  if (!impl_->ended) core::bug("the trailer was asked for before the end");
  return impl_->trailer;
}

Trailer verify(core::ByteSource& source) {
  Reader reader(source);
  core::Bytes bytes(layout::kMaxRawBytes);
  while (reader.read(std::span(bytes)) > 0) {}
  return reader.trailer();
}

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

void decode_elements(
    Dtype dtype, const std::byte* in, std::span<std::uint32_t> out, const std::string& name) {
  decode_integers(dtype, in, out, name);
}
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<std::uint64_t> out, const std::string& name) {
  decode_integers(dtype, in, out, name);
}
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<float> out, const std::string& name) {
  if (dtype != Dtype::f32) misfit(dtype, "f32", name);
  widen<float>(in, out);
}
void decode_elements(Dtype, const std::byte* in, std::span<std::byte> out, const std::string&) {
  if (!out.empty()) std::memcpy(out.data(), in, out.size());
}

}  // namespace shard
