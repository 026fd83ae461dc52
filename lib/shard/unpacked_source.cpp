#include "shard/unpacked_source.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/error.h"
#include "shard/layout.h"
#include "shard/zstd_frame.h"

namespace shard {

// Bytes of the file that wait.
struct UnpackedSource::Buffer {
  std::unique_ptr<core::ByteSource> file;
  core::Bytes bytes = core::Bytes(128 << 10);
  std::size_t begin = 0, end = 0;
  std::uint64_t read = 0;

  std::span<const std::byte> waiting() const {
    return std::span(bytes).subspan(begin, end - begin);
  }
  /// More bytes where none wait; false at the end of the file.
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
  /// Unpacks some of `in` into `out`; goes on to the next frame where one ends.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  /// A frame has begun and has not ended.
  bool within_frame() const { return within_frame_; }

 protected:
  bool within_frame_ = false;
};

namespace {

constexpr std::size_t kLongestMagic = 2 * sizeof(std::uint32_t) + layout::kHeaderName.size();

[[noreturn]] void cannot_unpack(const std::string& name, const char* format, const char* why) {
  core::fail(core::Code::bad_data, "{}: begins as {}, which cannot be unpacked: {}", name, format,
             why);
}

class ZstdUnpacker : public UnpackedSource::Unpacker {
 public:
  explicit ZstdUnpacker(std::string name) : name_(std::move(name)) {}
  Step step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t rest = ZSTD_decompressStream(context_.get(), &to, &from);
    if (ZSTD_isError(rest)) {
      if (ZSTD_getErrorCode(rest) == ZSTD_error_memory_allocation) throw std::bad_alloc();
      cannot_unpack(name_, "zstd", ZSTD_getErrorName(rest));
    }
    within_frame_ = rest != 0;
    return {from.pos, to.pos};
  }

 private:
  std::string name_;
  DecompressContext context_ = make_decompress_context();
};

class GzipUnpacker : public UnpackedSource::Unpacker {
 public:
  explicit GzipUnpacker(std::string name) : name_(std::move(name)) {
    constexpr int kWindowBits = 15, kGzip = 16;
    if (::inflateInit2(&stream_, kWindowBits + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }

  Step step(std::span<const std::byte> in, std::span<std::byte> out) override {
    // zlib does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      cannot_unpack(name_, "gzip", stream_.msg == nullptr ? ::zError(result) : stream_.msg);
    within_frame_ = result != Z_STREAM_END;
    if (result == Z_STREAM_END) ::inflateReset(&stream_);
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out};
  }

 private:
  std::string name_;
  z_stream stream_{};
};

std::unique_ptr<UnpackedSource::Unpacker> unpacker_for(std::span<const std::byte> start,
                                                       const std::string& name) {
  if (start.size() >= 3 && start[0] == std::byte{0x1F} && start[1] == std::byte{0x8B} &&
      start[2] == std::byte{Z_DEFLATED})
    return std::make_unique<GzipUnpacker>(name);
  if (start.size() < sizeof(std::uint32_t)) return nullptr;
  const auto magic = layout::get<std::uint32_t>(start, 0);
  // Of a shard the first frame is one that zstd skips; what follows it are ids.
  if (magic == layout::kHeaderMagic && start.size() >= kLongestMagic &&
      std::memcmp(start.data() + layout::kFrameHeadBytes, layout::kHeaderName.data(),
                  layout::kHeaderName.size()) == 0)
    core::fail(core::Code::bad_data, "{}: a shard of tokens and no text; --decode gives its text",
               name);
  const bool skippable = (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
  if (magic == layout::kZstdMagic || skippable) return std::make_unique<ZstdUnpacker>(name);
  return nullptr;
}

}  // namespace

UnpackedSource::UnpackedSource(std::unique_ptr<core::ByteSource> file)
    : buffer_(std::make_unique<Buffer>()) {
  Buffer& b = *buffer_;
  b.file = std::move(file);
  b.read = b.end = core::read_fully(*b.file, std::span(b.bytes).first(kLongestMagic));
  unpacker_ = unpacker_for(b.waiting(), name());
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
    // At the end of the file what was unpacked may still wait for room.
    const bool more = b.fill();
    if (!more && !unpacker_->within_frame()) break;
    const auto step = unpacker_->step(b.waiting(), out);
    b.begin += step.taken;
    if (step.given > 0) return step.given;
    if (!more)
      core::fail(core::Code::bad_data, "{}: cut short: it ends within its compressed data", name());
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

}  // namespace shard
