#pragma once
// Gives random access to a shard in a file.

#include "core/io.h"
#include "shard/header.h"

namespace shard {

/// A File checks the header, trailer and seek table when it opens a shard, and each frame when it
/// reads the frame; shard::verify also checks the rest. Throws Error{bad_data} as Reader does.
/// Thread safe.
class File {
 public:
  /// Opens a regular file. Caches up to `cache_bytes` of decompressed elements. Throws
  /// Error{no_input}.
  explicit File(const std::string& path, std::size_t cache_bytes = kCacheBytes);
  explicit File(
      std::shared_ptr<const core::RandomSource> bytes, std::size_t cache_bytes = kCacheBytes);
  ~File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  const Header& header() const;
  const Trailer& trailer() const;
  const std::string& name() const;
  /// Returns the number of elements.
  std::uint64_t size() const;

  /// Reads the elements [offset, offset + out.size()). Throws Error{bad_data} past the end and for
  /// an invalid conversion (reader.h).
  void read(std::uint64_t offset, std::span<std::uint32_t> out) const;
  void read(std::uint64_t offset, std::span<std::uint64_t> out) const;
  void read(std::uint64_t offset, std::span<float> out) const;
  /// Reads the elements' bytes, little-endian; out.size() is a multiple of the element size.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// Moves the documents out of the trailer, which has none afterwards, for a caller that keeps
  /// them itself.
  Documents take_documents();

  /// Returns the composable part of the fingerprint; see Dataset.
  const Content& content() const;

  static constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
