#pragma once
// Encodes the bytes of a shard other than elements: constants, header frame, trailer frame, seek
// table. All numbers are little-endian; a digest is its low half, then its high half.
//
//   header frame     u32 0x184D2A51, u32 bytes that follow
//                    "TESSHARD", u32 version, u32 JSON bytes, u64 tokenizer bytes
//                    JSON, the tokenizer as a zstd frame (absent if it has 0 bytes)
//                    u64 XXH3-64 of the frame before it
//   data frames      elements, at most 1 MiB raw per frame, each with content size and checksum
//   trailer frame    u32 0x184D2A52, u32 bytes that follow
//                    "TESSTAIL", u64 elements, u64 documents, u32 boundary bytes,
//                    u32 provenance bytes
//                    digests: data chain, fingerprint, file hash (all before the trailer frame)
//                    boundaries as a zstd frame: for each document LEB128 elements, source bytes,
//                    source words, in marked shards also marks (documents_codec.h)
//                    provenance: a JSON array
//                    names of documents, one per line, as a zstd frame; absent if there are none
//                    u64 XXH3-64 of the frame before it
//   seek table       u32 0x184D2A5E, u32 bytes that follow
//                    u32 compressed, u32 decompressed bytes of each frame above
//                    u32 frames, u8 0, u32 0x8F92EAB1

#include <concepts>

#include "core/io.h"
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
constexpr std::size_t kVersionEnd = 20;        ///< offset of the end of the version
constexpr std::size_t kMaxRawBytes = 1 << 20;  ///< largest raw size of a data frame
/// Raw size of the Writer's data frames; a random read of one segment decompresses no more than
/// this.
constexpr std::size_t kRawBytes = 128 << 10;
/// Largest size of the header frame, and of a tokenizer.
constexpr std::uint32_t kMaxHeaderBytes = 256u << 20;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;
constexpr std::uint64_t kMaxDocuments = std::uint64_t{1} << 32;

/// Returns the most documents, or marks, that a shard may have if its trailer ends at byte `end`.
/// Identical boundaries compress to almost nothing, but each takes 24 bytes in memory; the limit
/// bounds that memory.
constexpr std::uint64_t most_documents(std::uint64_t end) {
  return std::min(kMaxDocuments, (std::uint64_t{1} << 22) + 64 * end);
}

/// A FrameSize is one row of the seek table.
struct FrameSize {
  std::uint32_t compressed, raw;
  bool operator==(const FrameSize&) const = default;
};

template <std::unsigned_integral T> void put(core::Bytes& out, T number) {
  const auto at = out.size();
  out.resize(at + sizeof number);
  std::memcpy(out.data() + at, &number, sizeof number);
}
void put(core::Bytes& out, const core::Digest& digest);
void put(core::Bytes& out, std::string_view text);
/// Appends several of these, in order.
template <class... Fields> void put_all(core::Bytes& out, const Fields&... fields) {
  (put(out, fields), ...);
}

/// Returns the little-endian number at offset `at`; the caller has checked the bounds.
template <class T> T get(std::span<const std::byte> in, std::size_t at) {
  T number;
  std::memcpy(&number, in.data() + at, sizeof number);
  return number;
}

/// A TrailerFrame holds the trailer frame's fields; decode_documents() decodes the documents.
struct TrailerFrame {
  Content content;
  std::uint64_t marks = 0;  ///< number of marks in all documents
  core::Digest fingerprint, file_hash;
  core::Bytes boundaries;  ///< compressed
  std::string provenance;  ///< JSON
  core::Bytes names;       ///< compressed; empty: none
};

core::Bytes encode_header(const Header& header);
/// Encodes a trailer frame that will be at `offset`. Throws Error{bad_data} for too many documents.
core::Bytes encode_trailer(const TrailerFrame& trailer, std::uint64_t offset);
core::Bytes encode_seek_table(std::span<const FrameSize> frames);

/// Checks `start`, the first kVersionEnd or more bytes of a file (all of a shorter file), and
/// returns the size of the whole header frame. Throws Error{bad_data} unless they begin a shard of
/// this version.
std::size_t check_start(std::span<const std::byte> start, const std::string& name);
/// Decodes a whole header frame. Throws Error{bad_data}.
Header decode_header(std::span<const std::byte> frame, const std::string& name);
/// Decodes a whole trailer frame at `offset`. Checks boundaries, provenance and fingerprint against
/// each other and against `header`. Throws Error{bad_data}.
Trailer decode_trailer(std::span<const std::byte> frame, const Header& header, std::uint64_t offset,
    const std::string& name, Content& content);
/// Decodes a whole seek table. Throws Error{bad_data}.
std::vector<FrameSize> decode_seek_table(
    std::span<const std::byte> table, std::uint64_t offset, const std::string& name);

/// Throws Error{bad_data} for a file that is truncated (cut_short) or corrupt (damaged) at
/// `offset`.
[[noreturn]] void cut_short(const std::string& name, std::uint64_t offset, std::string_view where);
[[noreturn]] void damaged(const std::string& name, std::uint64_t offset, std::string_view what);

}  // namespace shard::layout
