#pragma once
// A byte source with look-ahead that hashes the consumed bytes.

#include <cstdint>
#include <span>

#include "core/hash.h"
#include "core/io.h"

namespace shard {

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

}  // namespace shard
