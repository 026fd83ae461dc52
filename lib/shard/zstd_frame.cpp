#include "shard/zstd_frame.h"

#include <zstd_errors.h>

#include <new>

#include "shard/layout.h"

namespace shard {
namespace {

// Twice as fast as zstd's default level; files are 3 % larger for token ids, 7 % for bytes.
constexpr int kLevel = 1;

template <class T> std::uint64_t largest(std::span<const std::byte> bytes) {
  T most = 0;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T))
    most = std::max(most, layout::get<T>(bytes, i));
  return most;
}

std::uint64_t largest(std::span<const std::byte> bytes, Dtype dtype) {
  switch (dtype) {
    case Dtype::u8: return largest<std::uint8_t>(bytes);
    case Dtype::u16: return largest<std::uint16_t>(bytes);
    case Dtype::u32: return largest<std::uint32_t>(bytes);
    case Dtype::u64: return largest<std::uint64_t>(bytes);
    case Dtype::f32: return 0;
  }
  return 0;
}

}  // namespace

CompressContext make_compress_context() {
  CompressContext context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  return context;
}

DecompressContext make_decompress_context() {
  DecompressContext context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context;
}

void compress_frame(ZSTD_CCtx* context, std::span<const std::byte> raw, core::Bytes& out) {
  out.resize(ZSTD_compressBound(raw.size()));
  const std::size_t n = ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size());
  if (ZSTD_isError(n)) {
    if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    core::bug("zstd cannot compress: {}", ZSTD_getErrorName(n));
  }
  out.resize(n);
}

FrameView look_at_frame(std::span<const std::byte> in) {
  using State = FrameView::State;
  const auto raw = ZSTD_getFrameContentSize(in.data(), in.size());
  if (raw == ZSTD_CONTENTSIZE_ERROR)
    return {in.size() < 18 ? State::partial : State::bad, 0, 0};  // 18 bytes: the longest frame
                                                                  // header
  if (raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == 0 || raw > layout::kMaxRawBytes) return {};
  FrameView view{State::bad, 0, static_cast<std::size_t>(raw)};
  const std::size_t size = ZSTD_findFrameCompressedSize(in.data(), in.size());
  if (!ZSTD_isError(size)) {
    view.state = State::whole;
    view.compressed = size;
  } else if (ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong) {
    view.state = State::partial;
  }
  return view;
}

void decompress_frame(ZSTD_DCtx* context, std::span<const std::byte> frame,
    std::span<std::byte> out, const Header& header, std::uint64_t offset, const std::string& name) {
  const std::size_t n =
      ZSTD_decompressDCtx(context, out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) && ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
    throw std::bad_alloc();
  if (ZSTD_isError(n) || n != out.size()) layout::damaged(name, offset, "a data frame");
  if (out.size() % size_of(header.dtype) != 0)
    layout::damaged(name, offset, "a data frame ends within an element");
  if (header.vocabulary > 0 && largest(out, header.dtype) >= header.vocabulary)
    core::bad_data(
        "{}: byte {}: an element of this frame is {}, which is not below the vocabulary size {}",
        name, offset, largest(out, header.dtype), header.vocabulary);
}

}  // namespace shard
