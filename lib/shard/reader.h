#pragma once
// Reads a shard front to back from a pipe, a file or memory.

#include <cstdint>
#include <memory>
#include <span>

#include "core/io.h"
#include "shard/header.h"

namespace shard {

/// A Reader verifies all bytes: once read() has returned 0, every byte was checked and nothing
/// follows the shard. Throws Error{bad_data} if the shard is corrupt, truncated, of another
/// version, or followed by more bytes; the message names the source and the byte offset. Not thread
/// safe.
class Reader {
 public:
  /// Reads the header. The source must outlive the Reader.
  explicit Reader(core::ByteSource& source);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const Header& header() const;
  /// Returns the source's name.
  const std::string& name() const;

  /// Fills `out` from the front and returns the number of elements, which is less than out.size()
  /// only at the end and then 0. Throws Error{bad_data} for an invalid conversion (elements.h).
  std::size_t read(std::span<std::uint32_t> out);
  std::size_t read(std::span<std::uint64_t> out);
  std::size_t read(std::span<float> out);
  /// Reads the elements' bytes, little-endian; out.size() must hold a whole number of elements.
  std::size_t read(std::span<std::byte> out);

  /// Returns the trailer. Throws Error{bug} before read() has returned 0.
  const Trailer& trailer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a whole shard, throws the first error found in it, and otherwise returns its trailer.
Trailer verify(core::ByteSource& source);

}  // namespace shard
