#pragma once
// What a file holds, whether it is compressed or not.

#include <cstdint>
#include <memory>
#include <string>

#include "core/io.h"

namespace shard {

/// The bytes of a file; where it begins as zstd or gzip do, those it unpacks to, of all its frames
/// (members) one after the other.
class UnpackedSource : public core::ByteSource {
 public:
  /// Throws Error{bad_data} for a shard: its bytes are token ids and no text.
  explicit UnpackedSource(std::unique_ptr<core::ByteSource> file);
  ~UnpackedSource() override;
  /// Throws Error{bad_data} where the compressed bytes are damaged or cut short, Error{io}.
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override;
  /// Begins as zstd or gzip do.
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
