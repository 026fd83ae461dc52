#pragma once
// Computes XXH3 digests, which serve as checksums of blocks and fingerprints of artefacts.

#include "core/base.h"

struct XXH3_state_s;

namespace core {

/// A Digest is a 128-bit hash. It is printed as 32 hexadecimal digits, high half first.
struct Digest {
  std::uint64_t high = 0, low = 0;
  std::string hex() const { return fmt::format("{:016x}{:016x}", high, low); }
  /// Parses 32 hexadecimal digits. Throws Error{bad_data} for any other text.
  static Digest from_hex(std::string_view hex);
  bool operator==(const Digest&) const = default;
};

/// Returns the XXH3-64 hash of `bytes`.
std::uint64_t hash64(std::span<const std::byte> bytes);
/// Returns the XXH3-128 hash of the bytes.
Digest hash128(std::span<const std::byte> bytes);
Digest hash128(std::string_view text);

/// A Hasher computes the XXH3-128 hash of bytes that arrive in pieces.
class Hasher {
 public:
  Hasher();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Discards the input so far.
  void reset();
  /// Returns the digest of the input so far; update() may follow.
  Digest digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace core
