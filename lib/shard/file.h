#pragma once
// Reads a shard in a file at random.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/io.h"
#include "shard/fingerprint.h"
#include "shard/header.h"

namespace shard {

/// Checks header, trailer and seek table when opened and each frame when it is read; shard::verify
/// checks the rest too. Throws Error{bad_data} as Reader does. Thread safe.
class File {
 public:
  /// A regular file. Keeps up to `cache_bytes` of elements decompressed. Throws Error{no_input}.
  explicit File(const std::string& path, std::size_t cache_bytes = kCacheBytes);
  explicit File(std::shared_ptr<const core::RandomSource> bytes,
                std::size_t cache_bytes = kCacheBytes);
  ~File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  const Header& header() const;
  const Trailer& trailer() const;
  const std::string& name() const;
  /// Elements.
  std::uint64_t size() const;

  /// Elements offset .. offset + out.size(). Throws Error{bad_data} past the end or if the elements
  /// do not fit the type.
  void read(std::uint64_t offset, std::span<std::uint32_t> out) const;
  void read(std::uint64_t offset, std::span<std::uint64_t> out) const;
  void read(std::uint64_t offset, std::span<float> out) const;
  /// As they lie in the file, little-endian; out.size() is a multiple of the element's size.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// Moves the documents out of the trailer, which has none afterwards: for who keeps them itself.
  Documents take_documents();

  /// The part of the fingerprint that composes; see Dataset.
  const Content& content() const;

  static constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
