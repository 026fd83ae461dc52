#pragma once
// What a file holds, whether it is compressed or not.

#include <cstdint>
#include <memory>
#include <string>

#include "core/io.h"

namespace shard {

/// What unpacking may take for what a file wants to look back at (zstd's window, xz's dictionary).
constexpr std::uint64_t kUnpackMemory = std::uint64_t{128} << 20;

/// The bytes of a file; where it begins as zstd, gzip, bzip2 or xz do, those it unpacks to, of all
/// its frames (members, streams) one after the other. Zeros behind the last one are passed over, as
/// gzip does, but for zstd's.
class UnpackedSource : public core::ByteSource {
 public:
  /// Throws Error{bad_data} for a shard: its bytes are token ids and no text.
  explicit UnpackedSource(std::unique_ptr<core::ByteSource> file,
                          std::uint64_t memory = kUnpackMemory);
  ~UnpackedSource() override;
  /// Throws Error{bad_data} where the compressed bytes are damaged, cut short or want more memory,
  /// Error{io}.
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override;
  /// Begins as a compressed file does.
  bool packed() const { return unpacker_ != nullptr; }
  /// How many bytes of the file itself have been read, for progress.
  std::uint64_t file_bytes() const;

  /// Turns compressed bytes into what they hold, a piece at a time.
  class Unpacker;

 private:
  struct Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Unpacker> unpacker_;  // none: the bytes as they are
};

/// A regular file, also one that is stdin ("-"): its bytes are all there.
bool is_stored(const std::string& path);
/// What core::open_source() opens; a stored file unpacked, all else as it arrives. Throws as both
/// do.
std::unique_ptr<core::ByteSource> open_unpacked(const std::string& path);

}  // namespace shard
