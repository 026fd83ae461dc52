#pragma once
// XXH3 digests: checksums of blocks and fingerprints of artefacts.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace core {

/// 128 bits, printed as 32 hexadecimal digits (high half first).
struct Digest {
  std::uint64_t high = 0, low = 0;
  std::string hex() const;
  /// Throws Error{bad_data} unless `hex` is 32 hexadecimal digits.
  static Digest from_hex(std::string_view hex);
  bool operator==(const Digest&) const = default;
};

std::uint64_t hash64(std::span<const std::byte> bytes);
Digest hash128(std::span<const std::byte> bytes);
Digest hash128(std::string_view text);

/// XXH3-128 of bytes that come in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Forgets what came so far.
  void reset();
  /// The digest of what came so far; more may follow.
  Digest digest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace core
