#include "shard/unpacked_source.h"

#include <bzlib.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd_errors.h>

#include "core/path_kind.h"
#include "core/plain_text.h"
#include "core/unnamed_file.h"
#include "shard/layout.h"
#include "shard/zstd_frame.h"

namespace shard {
namespace {

TextReader& reader() {
  static TextReader one;
  return one;
}

}  // namespace

// Holds input bytes that wait to be decompressed.
struct UnpackedSource::Buffer {
  std::unique_ptr<core::ByteSource> file;
  core::Bytes bytes = core::Bytes(128 << 10);
  std::size_t begin = 0, end = 0;
  std::uint64_t read = 0;

  std::span<const std::byte> waiting() const {
    return std::span(bytes).subspan(begin, end - begin);
  }
  /// Reads more bytes if none wait; returns false at the end of the file.
  bool fill() {
    if (begin < end) return true;
    begin = 0;
    end = file->read(bytes);
    read += end;
    return end > 0;
  }
};

class UnpackedSource::Unpacker {
 public:
  struct Step {
    std::size_t taken, given;  // bytes
  };
  virtual ~Unpacker() = default;
  /// Decompresses some of `in` into `out`; continues with the next frame after the end of one.
  /// At the end of the file, `in` is empty.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  /// Returns true inside a frame.
  bool within_frame() const { return within_frame_; }

 protected:
  bool within_frame_ = false;
};

namespace {

constexpr std::size_t kLongestMagic = layout::kFrameHeadBytes + layout::kHeaderName.size();

bool begins_as_shard(std::span<const std::byte> start) {
  return start.size() >= kLongestMagic &&
         layout::get<std::uint32_t>(start, 0) == layout::kHeaderMagic &&
         std::memcmp(start.data() + layout::kFrameHeadBytes, layout::kHeaderName.data(),
             layout::kHeaderName.size()) == 0;
}

[[noreturn]] void cannot_unpack(const std::string& name, const char* format, const char* why) {
  core::bad_data("{}: begins like {}, but cannot be decompressed: {}", name, format, why);
}

class ZstdUnpacker : public UnpackedSource::Unpacker {
 public:
  ZstdUnpacker(std::string name, std::uint64_t memory) : name_(std::move(name)), memory_(memory) {
    // The largest power of two that `memory` allows.
    const auto window = static_cast<int>(std::bit_width(memory)) - 1;
    const auto bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax,
        std::clamp(window, bounds.lowerBound, bounds.upperBound));
  }
  Step step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t rest = ZSTD_decompressStream(context_.get(), &to, &from);
    if (ZSTD_isError(rest)) {
      const auto code = ZSTD_getErrorCode(rest);
      if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
      if (code == ZSTD_error_frameParameter_windowTooLarge)
        core::bad_data(
            "{}: its zstd window is larger than the limit of {} MiB; decompress it first (zstd -dc "
            "--long=31 {} | ...), or give tokenize --decode-memory 2G",
            name_, memory_ >> 20, name_);
      cannot_unpack(name_, "zstd", ZSTD_getErrorName(rest));
    }
    within_frame_ = rest != 0;
    return {from.pos, to.pos};
  }

 private:
  std::string name_;
  std::uint64_t memory_;
  DecompressContext context_ = make_decompress_context();
};

// Decompresses consecutive members, each of which begins with the same byte, and ignores zeros
// after the last.
class MemberUnpacker : public UnpackedSource::Unpacker {
 public:
  MemberUnpacker(std::string name, const char* format, std::byte first_byte)
      : name_(std::move(name)), format_(format), first_byte_(first_byte) {}

  Step step(std::span<const std::byte> in, std::span<std::byte> out) final {
    if (within_frame_) return unpack(in, out);
    const auto padding = std::ranges::find_if(in, [](auto b) { return b != std::byte{}; });
    if (ended_ && padding != in.begin()) {
      padded_ = true;
      return {static_cast<std::size_t>(padding - in.begin()), 0};
    }
    if (ended_ && (padded_ || in[0] != first_byte_))
      refuse("data after its end that is neither compressed nor zeros");
    begin();
    within_frame_ = true;
    return unpack(in, out);
  }

 protected:
  virtual void begin() = 0;
  virtual Step unpack(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  void end_member() {
    within_frame_ = false;
    ended_ = true;
  }
  [[noreturn]] void refuse(const char* why) const { cannot_unpack(name_, format_, why); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  const char* format_;
  std::byte first_byte_;
  bool ended_ = false, padded_ = false;  // a member has ended; zeros follow it
};

// Gives a stream of one of the C libraries, whose members have the same names, input and room. The
// libraries do not modify the input.
template <class Stream>
void give(Stream& stream, std::span<const std::byte> in, std::span<std::byte> out) {
  stream.next_in = reinterpret_cast<decltype(stream.next_in)>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<decltype(stream.avail_in)>(in.size());
  stream.next_out = reinterpret_cast<decltype(stream.next_out)>(out.data());
  stream.avail_out = static_cast<decltype(stream.avail_out)>(out.size());
}

class GzipUnpacker : public MemberUnpacker {
 public:
  explicit GzipUnpacker(std::string name)
      : MemberUnpacker(std::move(name), "gzip", std::byte{0x1F}) {
    constexpr int kWindowBits = 15, kGzip = 16;
    if (::inflateInit2(&stream_, kWindowBits + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }

 private:
  void begin() override { ::inflateReset(&stream_); }
  Step unpack(std::span<const std::byte> in, std::span<std::byte> out) override {
    give(stream_, in, out);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      refuse(stream_.msg == nullptr ? ::zError(result) : stream_.msg);
    if (result == Z_STREAM_END) end_member();
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out};
  }

  z_stream stream_{};
};

class Bzip2Unpacker : public MemberUnpacker {
 public:
  explicit Bzip2Unpacker(std::string name)
      : MemberUnpacker(std::move(name), "bzip2", std::byte{'B'}) {}
  ~Bzip2Unpacker() override { ::BZ2_bzDecompressEnd(&stream_); }

 private:
  void begin() override {
    ::BZ2_bzDecompressEnd(&stream_);  // no effect before the first begin()
    stream_ = {};
    if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  Step unpack(std::span<const std::byte> in, std::span<std::byte> out) override {
    give(stream_, in, out);
    const int result = ::BZ2_bzDecompress(&stream_);
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    if (result != BZ_OK && result != BZ_STREAM_END) refuse("damaged data");
    if (result == BZ_STREAM_END) end_member();
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out};
  }

  bz_stream stream_{};
};

class XzUnpacker : public MemberUnpacker {
 public:
  XzUnpacker(std::string name, std::uint64_t memory)
      : MemberUnpacker(std::move(name), "xz", std::byte{0xFD}), memory_(memory) {}
  ~XzUnpacker() override { ::lzma_end(&stream_); }

 private:
  void begin() override {
    // The decoder itself goes on with the next stream, and skips zeros in fours behind one.
    if (::lzma_stream_decoder(&stream_, memory_, LZMA_CONCATENATED) != LZMA_OK)
      throw std::bad_alloc();
  }
  Step unpack(std::span<const std::byte> in, std::span<std::byte> out) override {
    give(stream_, in, out);
    const lzma_ret result = ::lzma_code(&stream_, in.empty() ? LZMA_FINISH : LZMA_RUN);
    if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
    if (result == LZMA_MEMLIMIT_ERROR)
      core::bad_data(
          "{}: decompression needs {} MiB, more than the limit of {} MiB; decompress it first (xz "
          "-dc {} | ...), or give tokenize --decode-memory {}M",
          name(), mebibytes(::lzma_memusage(&stream_)), memory_ >> 20, name(),
          mebibytes(::lzma_memusage(&stream_)));
    // Without output room or input bytes it must be called again.
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
      refuse(
          result == LZMA_OPTIONS_ERROR ? "a filter that liblzma does not support" : "damaged data");
    if (result == LZMA_STREAM_END) end_member();
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out};
  }
  static std::uint64_t mebibytes(std::uint64_t bytes) { return (bytes >> 20) + 1; }

  std::uint64_t memory_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

// With gzip's, the method deflate.
constexpr std::string_view kGzipMagic = "\x1F\x8B\x08", kXzMagic("\xFD\x37zXZ\0", 6);

std::unique_ptr<UnpackedSource::Unpacker> unpacker_for(
    std::span<const std::byte> start, const std::string& name, std::uint64_t memory) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (core::is_bzip2(text)) return std::make_unique<Bzip2Unpacker>(name);
  if (text.starts_with(kXzMagic)) return std::make_unique<XzUnpacker>(name, memory);
  if (text.starts_with(kGzipMagic)) return std::make_unique<GzipUnpacker>(name);
  if (start.size() < sizeof(std::uint32_t)) return nullptr;
  // The first frame of a shard is skippable for zstd; the frames after it are ids.
  if (begins_as_shard(start))
    core::bad_data("{}: is a shard of tokens, not a text; tokenize --decode prints its text", name);
  const auto magic = layout::get<std::uint32_t>(start, 0);
  const bool skippable = (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
  if (magic == layout::kZstdMagic || skippable) return std::make_unique<ZstdUnpacker>(name, memory);
  return nullptr;
}

// Returns true if a file is named as a compressed one and ends before the bytes that would tell.
bool ends_in_magic(std::string_view all, std::string_view name) {
  struct Packed {
    std::string_view end, magic;
  };
  constexpr std::array kPacked = {Packed{".gz", kGzipMagic}, Packed{".bz2", "BZh"},
      Packed{".xz", kXzMagic}, Packed{".zst", "\x28\xB5\x2F\xFD"}};
  constexpr std::size_t kBzip2 = 10;
  return !all.empty() && std::ranges::any_of(kPacked, [&](const Packed& packed) {
    const bool begun = packed.magic.starts_with(all) ||
                       (packed.end == ".bz2" && all.size() < kBzip2 && all.starts_with("BZh"));
    return begun && name.ends_with(packed.end);
  });
}

}  // namespace

UnpackedSource::UnpackedSource(std::unique_ptr<core::ByteSource> file, std::uint64_t memory)
    : buffer_(std::make_unique<Buffer>()) {
  Buffer& b = *buffer_;
  b.file = std::move(file);
  b.read = b.end = core::read_fully(*b.file, std::span(b.bytes).first(kLongestMagic));
  unpacker_ = unpacker_for(b.waiting(), name(), memory);
  const std::string_view start(reinterpret_cast<const char*>(b.bytes.data()), b.end);
  if (!unpacker_ && b.end < kLongestMagic && ends_in_magic(start, name()))
    core::bad_data("{}: cut short: it ends within its compressed data", name());
}

UnpackedSource::~UnpackedSource() = default;

const std::string& UnpackedSource::name() const { return buffer_->file->name(); }
std::uint64_t UnpackedSource::file_bytes() const { return buffer_->read; }

std::size_t UnpackedSource::read(std::span<std::byte> out) {
  Buffer& b = *buffer_;
  if (!unpacker_) {
    const auto waiting = b.waiting();
    if (waiting.empty()) {
      const std::size_t got = b.file->read(out);
      b.read += got;
      return got;
    }
    const std::size_t n = std::min(waiting.size(), out.size());
    std::memcpy(out.data(), waiting.data(), n);
    b.begin += n;
    return n;
  }
  while (!out.empty()) {
    // At the end of the file, decompressed bytes may still wait for output room.
    const bool more = b.fill();
    if (!more && !unpacker_->within_frame()) break;
    const auto step = unpacker_->step(b.waiting(), out);
    b.begin += step.taken;
    if (step.given > 0) return step.given;
    if (!more && unpacker_->within_frame())
      core::bad_data("{}: cut short: it ends within its compressed data", name());
  }
  return 0;
}

bool is_stored(const std::string& path) {
  if (path != "-") return core::is_regular_file(path);
  struct stat status {};
  return ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
}

std::unique_ptr<core::ByteSource> open_unpacked(const std::string& path) {
  auto source = core::open_source(path);
  if (!is_stored(path)) return source;
  return std::make_unique<UnpackedSource>(std::move(source));
}

void read_texts_by(TextReader with) { reader() = std::move(with); }

bool is_text(const std::string& path) {
  if (!core::is_regular_file(path) || is_shard(path)) return false;
  using core::PathKind;
  const auto kind = core::path_kind(path);
  if (kind == PathKind::config || kind == PathKind::tokenizer || kind == PathKind::lfs_pointer)
    return false;  // a user does not mean the text of these files
  std::array<std::byte, 4096> start;
  std::size_t n = 0;
  try {
    n = core::read_fully(*open_unpacked(path), start);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) throw;
    return false;  // corrupt compressed file; the reader of shards reports it
  }
  return n > 0 && core::begins_as_text({reinterpret_cast<const char*>(start.data()), n});
}

void refuse_text(const std::string& path, std::string_view give) {
  if (path != "-" && is_text(path)) core::bad_data("{}: is a text file; give {}", path, give);
}

std::shared_ptr<const core::RandomSource> spooled_or_made(const std::string& path) {
  const auto reads = [](const std::string& file) { return reader() && is_text(file); };
  if (path != "-" && core::is_regular_file(path))
    return reads(path) ? reader()(path, path) : nullptr;
  const auto source = core::open_source(path);
  core::UnnamedFile spooled(source->name());
  spooled.write_all_of(*source);
  return reads(spooled.path()) ? reader()(spooled.path(), source->name()) : spooled.contents();
}

bool is_shard(const std::string& path) {
  if (!is_stored(path)) return false;
  const auto source = core::open_source(path);
  std::array<std::byte, kLongestMagic> head;
  return begins_as_shard(std::span(head).first(core::read_fully(*source, head)));
}

}  // namespace shard
