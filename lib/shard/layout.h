#pragma once
// The bytes of a shard that are no elements: constants, header frame, trailer frame, seek table.
// All numbers are little-endian; a digest is its low half, then its high half.
//
//   header frame     u32 0x184D2A51, u32 bytes that follow
//                    "TESSHARD", u32 version, u32 JSON bytes, u64 tokenizer bytes
//                    JSON, the tokenizer as a zstd frame (nothing if it has 0 bytes)
//                    u64 XXH3-64 of the frame before it
//   data frames      elements, at most 1 MiB raw a frame, content size and checksum in each
//   trailer frame    u32 0x184D2A52, u32 bytes that follow
//                    "TESSTAIL", u64 elements, u64 documents, u32 boundary bytes,
//                    u32 provenance bytes
//                    digests: data chain, fingerprint, file hash (all before the trailer frame)
//                    boundaries as a zstd frame: for each document LEB128 elements, source bytes,
//                    source words, of marked shards marks (documents_codec.h)
//                    provenance: a JSON array
//                    names of documents, a line each, as a zstd frame; nothing if there is none
//                    u64 XXH3-64 of the frame before it
//   seek table       u32 0x184D2A5E, u32 bytes that follow
//                    u32 compressed, u32 decompressed bytes of each frame above
//                    u32 frames, u8 0, u32 0x8F92EAB1

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io.h"
#include "shard/fingerprint.h"
#include "shard/header.h"

namespace shard::layout {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kZstdMagic = 0xFD2FB528, kHeaderMagic = 0x184D2A51,
                        kTrailerMagic = 0x184D2A52, kSeekTableMagic = 0x184D2A5E,
                        kSeekFooterMagic = 0x8F92EAB1;
constexpr std::string_view kHeaderName = "TESSHARD", kTrailerName = "TESSTAIL";
constexpr std::size_t kFrameHeadBytes = 8;     ///< magic and size of a skippable frame
constexpr std::size_t kSeekFooterBytes = 9;    ///< frames, descriptor, magic
constexpr std::size_t kVersionEnd = 20;        ///< bytes up to and with the version
constexpr std::size_t kMaxRawBytes = 1 << 20;  ///< of a data frame
/// What the Writer makes: a random read of one segment decompresses no more than this.
constexpr std::size_t kRawBytes = 128 << 10;
constexpr std::uint32_t kMaxHeaderBytes = 256u << 20;  ///< of the header frame, and of a tokenizer
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;
constexpr std::uint64_t kMaxDocuments = std::uint64_t{1} << 32;

/// Documents, or marks, of a shard whose trailer ends at byte `end`: boundaries that are all alike compress to
/// nothing, and reading them takes 24 bytes each.
constexpr std::uint64_t most_documents(std::uint64_t end) {
  return std::min(kMaxDocuments, (std::uint64_t{1} << 22) + 64 * end);
}

/// One row of the seek table.
struct FrameSize {
  std::uint32_t compressed, raw;
  bool operator==(const FrameSize&) const = default;
};

template <std::unsigned_integral T>
void put(core::Bytes& out, T number) {
  const auto at = out.size();
  out.resize(at + sizeof number);
  std::memcpy(out.data() + at, &number, sizeof number);
}
void put(core::Bytes& out, const core::Digest& digest);
void put(core::Bytes& out, std::string_view text);

/// A little-endian number at `at`; the caller has checked that it is there.
template <class T>
T get(std::span<const std::byte> in, std::size_t at) {
  T number;
  std::memcpy(&number, in.data() + at, sizeof number);
  return number;
}

/// The trailer frame's fields; documents are decoded by decode_documents().
struct TrailerFrame {
  Content content;
  std::uint64_t marks = 0;  ///< of all documents
  core::Digest fingerprint, file_hash;
  core::Bytes boundaries;  ///< compressed
  std::string provenance;  ///< JSON
  core::Bytes names;       ///< compressed; empty: none
};

core::Bytes encode_header(const Header& header);
/// `offset`: where the frame will lie. Throws Error{bad_data} for more documents than it may have.
core::Bytes encode_trailer(const TrailerFrame& trailer, std::uint64_t offset);
core::Bytes encode_seek_table(std::span<const FrameSize> frames);

/// Throws Error{bad_data} unless `start`, the first bytes of a file, are those of a shard of this
/// version: at least kVersionEnd of them, or all there are. Returns the whole header frame's size.
std::size_t check_start(std::span<const std::byte> start, const std::string& name);
/// `frame` is whole. Throws Error{bad_data}.
Header decode_header(std::span<const std::byte> frame, const std::string& name);
/// `frame` is whole, `offset` where it lies. Boundaries, provenance and fingerprint are checked
/// against each other and against `header`. Throws Error{bad_data}.
Trailer decode_trailer(std::span<const std::byte> frame, const Header& header, std::uint64_t offset,
                       const std::string& name, Content& content);
/// `table` is whole. Throws Error{bad_data}.
std::vector<FrameSize> decode_seek_table(std::span<const std::byte> table, std::uint64_t offset,
                                         const std::string& name);

[[noreturn]] void cut_short(const std::string& name, std::uint64_t offset, std::string_view where);
[[noreturn]] void damaged(const std::string& name, std::uint64_t offset, std::string_view what);

}  // namespace shard::layout
