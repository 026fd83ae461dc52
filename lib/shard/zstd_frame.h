#pragma once
// Owns zstd's contexts, and defines data frames.

#include <zstd.h>

#include "core/io.h"
#include "shard/header.h"

namespace shard {

struct ZstdFree {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using CompressContext = std::unique_ptr<ZSTD_CCtx, ZstdFree>;
using DecompressContext = std::unique_ptr<ZSTD_DCtx, ZstdFree>;

/// Makes a context with checksum and content size enabled.
CompressContext make_compress_context();
DecompressContext make_decompress_context();

/// Compresses `raw` into one frame in `out`, which keeps its capacity.
void compress_frame(ZSTD_CCtx* context, std::span<const std::byte> raw, core::Bytes& out);

/// A FrameView describes the frame at the start of `in`: whole, partial, or not a frame that a
/// shard may have.
struct FrameView {
  enum class State { whole, partial, bad } state = State::bad;
  std::size_t compressed = 0, raw = 0;
};
FrameView look_at_frame(std::span<const std::byte> in);

/// Decompresses a whole data frame to out.size() bytes and checks that every element is below the
/// vocabulary. `offset` is the frame's offset in the file. Throws Error{bad_data}.
void decompress_frame(ZSTD_DCtx* context, std::span<const std::byte> frame,
    std::span<std::byte> out, const Header& header, std::uint64_t offset, const std::string& name);

}  // namespace shard
