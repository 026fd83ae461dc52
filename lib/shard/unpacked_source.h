#pragma once
// Reads a file's contents, compressed or not.
// Lets programs accept text files in place of shards.
// Distinguishes shards from other files.

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
  explicit UnpackedSource(
      std::unique_ptr<core::ByteSource> file, std::uint64_t memory = kUnpackMemory);
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

/// A TextReader converts the text file at `path` to a shard and returns the shard's bytes. `name`
/// is the file's name in messages.
using TextReader = std::function<std::shared_ptr<const core::RandomSource>(
    const std::string& path, const std::string& name)>;

/// Makes Dataset also accept files that begin as text (compressed files included); `reader`
/// converts them. Call it at program start, before any thread starts.
void read_texts_by(TextReader reader);

/// Returns the reader's shard for a text; the bytes of any other input that is not a regular file
/// (stdin, a pipe), in a temporary file; null for a regular file that is not text, or without a
/// reader. Throws as the reader does, Error{no_input}, Error{io}.
std::shared_ptr<const core::RandomSource> spooled_or_made(const std::string& path);

/// Returns true for a regular file that begins as text, compressed or not. Throws Error{no_input},
/// Error{io}.
bool is_text(const std::string& path);

/// Throws Error{bad_data} for a text in place of a shard of another kind, which no text can be
/// converted to. `give` says which: "an order of bm25-pack".
void refuse_text(const std::string& path, std::string_view give);

/// Returns true for a regular file that begins as a shard; does not check the rest. Throws
/// Error{no_input}.
bool is_shard(const std::string& path);

}  // namespace shard
