#pragma once
// Reads a shard front to back from a pipe, a file or memory.
// A byte source with look-ahead that hashes the consumed bytes.
// Converts elements from their bytes in a frame to the types that programs use.

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

  const Header& header() const;
  /// Returns the source's name.
  const std::string& name() const;

  /// Fills `out` from the front and returns the number of elements, which is less than out.size()
  /// only at the end and then 0. Throws Error{bad_data} for an invalid conversion (reader.h).
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

/// An Input reads a source, which must outlive it.
class Input {
 public:
  explicit Input(core::ByteSource& source) : source_(source) {}
  /// Returns at least the next `n` bytes, or all that remain.
  std::span<const std::byte> peek(std::size_t n);
  /// Advances by `n` bytes, which peek() has returned.
  void consume(std::size_t n);
  /// Consumes and returns the next `n` bytes, or all that remain; memory grows with the bytes
  /// present.
  core::Bytes take(std::size_t n);

  std::uint64_t offset() const { return offset_; }
  /// Returns the XXH3-128 of all consumed bytes.
  core::Digest hash() const { return hash_.digest(); }
  const std::string& name() const { return source_.name(); }

 private:
  core::ByteSource& source_;
  core::Bytes buffer_;
  std::size_t piece_ = 1 << 10;  // bytes per read; grows, so that small inputs stay cheap
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  core::Hasher hash_;
};

/// Decodes out.size() elements of type `dtype` from `in`. Throws Error{bad_data}, naming `name`,
/// for an invalid conversion: integers to float, floats to integers, u64 to u32.
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<std::uint32_t> out, const std::string& name);
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<std::uint64_t> out, const std::string& name);
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<float> out, const std::string& name);
/// Copies out.size() bytes.
void decode_elements(
    Dtype dtype, const std::byte* in, std::span<std::byte> out, const std::string& name);

/// Returns how many bytes of the file one item of a span<T> takes: the element's size, or 1 for
/// std::byte.
template <class T> std::size_t stored_bytes(Dtype dtype) {
  return sizeof(T) == 1 ? 1 : size_of(dtype);
}

}  // namespace shard
