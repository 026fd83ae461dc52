// A shard of any bytes gives elements or an Error{bad_data} with little memory.

#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "shard/documents_codec.h"
#include "shard/file.h"
#include "shard/layout.h"
#include "shard/reader.h"
#include "shard/zstd_frame.h"

namespace {

std::vector<std::byte> read_through(std::span<const std::byte> bytes, bool& whole) {
  std::vector<std::byte> all;
  try {
    core::MemorySource source(bytes);
    shard::Reader reader(source);
    std::vector<std::byte> piece(1000);
    while (const auto n = reader.read(std::span(piece)))
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
    whole = true;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
  return all;
}

std::vector<std::byte> read_at_random(std::span<const std::byte> bytes, bool& whole) {
  std::vector<std::byte> all;
  try {
    const shard::File file(std::make_shared<core::RandomMemory>(bytes));
    if (file.size() > (std::uint64_t{1} << 27)) return all;
    all.resize(file.size() * shard::size_of(file.header().dtype));
    file.read(0, std::span(all));
    whole = true;
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
  return all;
}

namespace layout = shard::layout;

void set(std::span<std::byte> bytes, std::size_t at, const auto& value) {
  std::memcpy(&bytes[at], &value, sizeof value);
}

// Returns the size of a skippable frame, or of its available part. Its last 8 bytes are the hash.
std::size_t skippable_size(std::span<const std::byte> in) {
  return std::min<std::size_t>(in.size(), 8ull + layout::get<std::uint32_t>(in, 4));
}

void seal(std::span<std::byte> frame) {
  set(frame, 4, static_cast<std::uint32_t>(frame.size() - 8));
  set(frame, frame.size() - 8, core::hash64(frame.first(frame.size() - 8)));
}

// Repairs zstd's own checksum from the decompressed bytes of the frame.
void seal_zstd(std::span<std::byte> frame, std::size_t raw_bytes) {
  constexpr std::byte kHasChecksum{4};  // in the byte after the magic
  if (frame.size() < 10 || (frame[4] & kHasChecksum) == std::byte{0}) return;
  std::vector<std::byte> bare(frame.begin(), frame.end() - 4), raw(raw_bytes);
  bare[4] &= ~kHasChecksum;
  const auto n = ZSTD_decompress(raw.data(), raw.size(), bare.data(), bare.size());
  if (!ZSTD_isError(n))
    set(frame, frame.size() - 4, static_cast<std::uint32_t>(XXH64(raw.data(), n, 0)));
}

// Repairs the trailer's digests of the boundaries, and its hashes.
void seal_trailer(
    std::span<std::byte> frame, const shard::Header& header, const core::Digest& file_hash) {
  set(frame, 72, file_hash.low), set(frame, 80, file_hash.high);
  const auto boundary_bytes = layout::get<std::uint32_t>(frame, 32);
  if (boundary_bytes <= frame.size() - 96) {
    const auto boundaries = frame.subspan(88, boundary_bytes);
    seal_zstd(boundaries, 1 << 16);
    try {
      const auto documents = shard::decode_documents(boundaries,
          layout::get<std::uint64_t>(frame, 24), layout::get<std::uint64_t>(frame, 16),
          header.marked, layout::most_documents(frame.size()), 0, "forged");
      shard::Content content;
      for (std::size_t i = 0; i < documents.size(); ++i) {
        const auto begin = i > 0 ? documents.end[i - 1] : 0;
        content.append({}, documents.end[i] - begin, documents.bytes[i], documents.words[i],
            shard::marks_within(documents, begin, documents.end[i]));
      }
      content.data = shard::Chain::from({.high = layout::get<std::uint64_t>(frame, 48),
          .low = layout::get<std::uint64_t>(frame, 40)});
      const auto fingerprint = shard::fingerprint(header, content);
      set(frame, 56, fingerprint.low), set(frame, 64, fingerprint.high);
    } catch (const core::Error&) {  // the boundaries are refused before the fingerprint is checked
    }
  }
  seal(frame);
}

}  // namespace

// Repairs frame by frame from the front, in the layout of shard/layout.h, and rebuilds the seek
// table.
FUZZ_REPAIR(shard)(std::vector<std::byte>& bytes) {
  const std::span all(bytes);
  if (all.size() < 40) return;
  std::size_t at = skippable_size(all);
  if (at < 40) return;
  seal(all.first(at));
  const auto header = layout::decode_header(all.first(at), "forged");
  std::vector<layout::FrameSize> table{{static_cast<std::uint32_t>(at), 0}};
  while (all.size() - at >= 4 && layout::get<std::uint32_t>(all, at) == layout::kZstdMagic) {
    const auto view = shard::look_at_frame(all.subspan(at));
    if (view.state != shard::FrameView::State::whole) return;
    seal_zstd(all.subspan(at, view.compressed), view.raw);
    table.push_back(
        {static_cast<std::uint32_t>(view.compressed), static_cast<std::uint32_t>(view.raw)});
    at += view.compressed;
  }
  if (all.size() - at < 96) return;
  const auto trailer = all.subspan(at, skippable_size(all.subspan(at)));
  if (trailer.size() < 96) return;
  seal_trailer(trailer, header, core::hash128(std::span<const std::byte>(all.first(at))));
  table.push_back({static_cast<std::uint32_t>(trailer.size()), 0});
  const auto seek = layout::encode_seek_table(table);
  bytes.resize(at + trailer.size());
  bytes.insert(bytes.end(), seek.begin(), seek.end());
}

FUZZ_TARGET(shard)(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  bool streamed = false, opened = false;
  const auto a = read_through(bytes, streamed), b = read_at_random(bytes, opened);
  // Random access must accept what the stream accepts, with equal elements.
  if (streamed && (!opened || a != b)) std::abort();
}
