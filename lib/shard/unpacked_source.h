#pragma once
// Reads a file's contents, compressed or not.

#include <cstdint>
#include <memory>
#include <string>

#include "core/io.h"

namespace shard {

/// The most memory for a decompression window (zstd's window, xz's dictionary), in bytes.
constexpr std::uint64_t kUnpackMemory = std::uint64_t{128} << 20;

/// An UnpackedSource yields the bytes of a file or, if the file begins as zstd, gzip, bzip2 or xz,
/// the decompressed bytes of all its frames (members, streams) in sequence. Except for zstd, zeros
/// after the last frame are ignored, as gzip does.
class UnpackedSource : public core::ByteSource {
 public:
  /// Opens the source. Throws Error{bad_data} for a shard, whose bytes are token ids and not text.
  explicit UnpackedSource(std::unique_ptr<core::ByteSource> file,
                          std::uint64_t memory = kUnpackMemory);
  ~UnpackedSource() override;
  /// Reads bytes. Throws Error{bad_data} if the compressed bytes are corrupt, truncated or need
  /// more than `memory`, and Error{io}.
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override;
  /// Returns true if the file begins as a compressed file.
  bool packed() const { return unpacker_ != nullptr; }
  /// Returns how many bytes of the file itself have been read, for progress.
  std::uint64_t file_bytes() const;

  /// An Unpacker decompresses bytes piece by piece.
  class Unpacker;

 private:
  struct Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Unpacker> unpacker_;  // null: the file is not compressed
};

/// Returns true for a regular file, also if stdin ("-") is one: all its bytes are present.
bool is_stored(const std::string& path);
/// Opens a path as core::open_source() does, and decompresses a regular file; other inputs are not
/// decompressed. Throws as core::open_source() and UnpackedSource do.
std::unique_ptr<core::ByteSource> open_unpacked(const std::string& path);

}  // namespace shard
