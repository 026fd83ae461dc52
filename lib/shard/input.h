#pragma once
// A byte source with look-ahead that hashes what is consumed.

#include <cstdint>
#include <span>

#include "core/hash.h"
#include "core/io.h"

namespace shard {

class Input {
 public:
  explicit Input(core::ByteSource& source) : source_(source) {}
  /// The next bytes: at least `n`, or all there are.
  std::span<const std::byte> peek(std::size_t n);
  /// Goes on by `n` bytes that peek() has shown.
  void consume(std::size_t n);
  /// The next `n` bytes, or all there are; memory grows with what is there.
  core::Bytes take(std::size_t n);

  std::uint64_t offset() const { return offset_; }
  /// XXH3-128 of everything consumed.
  core::Digest hash() const { return hash_.digest(); }
  const std::string& name() const { return source_.name(); }

 private:
  core::ByteSource& source_;
  core::Bytes buffer_;
  std::size_t piece_ = 1 << 10;  // to read at once; grows, so that small inputs stay cheap
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  core::Hasher hash_;
};

}  // namespace shard
