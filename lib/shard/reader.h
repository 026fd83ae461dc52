#pragma once
// Reads a shard front to back, from anything: a pipe, a file, memory.

#include <cstdint>
#include <memory>
#include <span>

#include "core/io.h"
#include "shard/header.h"

namespace shard {

/// Checks all bytes on the way: when read() has given 0, each byte was verified and nothing follows
/// the shard. Throws Error{bad_data} for what is damaged, cut short, of another version, or has
/// bytes behind it; the message has the name of the source and the byte. Not thread safe.
class Reader {
 public:
  /// Reads the header. The source must outlive the Reader.
  explicit Reader(core::ByteSource& source);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const Header& header() const;
  /// The source's name.
  const std::string& name() const;

  /// Fills `out` from the front, returns how many elements; less than out.size() only at the end, 0
  /// once there are none. Throws Error{bad_data} if the shard's elements do not fit the type (u64
  /// read as u32, floats as integers).
  std::size_t read(std::span<std::uint32_t> out);
  std::size_t read(std::span<std::uint64_t> out);
  std::size_t read(std::span<float> out);
  /// The elements as they lie in the file, little-endian; a whole number of elements.
  std::size_t read(std::span<std::byte> out);

  /// Throws Error{bug} before read() gave 0.
  const Trailer& trailer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads all of a shard and throws what is wrong with it; its trailer otherwise.
Trailer verify(core::ByteSource& source);

}  // namespace shard
