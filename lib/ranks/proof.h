#pragma once
// Proofs of knowledge of a shared key, which never send the key.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranks {

/// The length of a proof, in bytes.
inline constexpr std::size_t kProofBytes = 32;

/// Returns HMAC-SHA-256 of `message` under `key` (RFC 2104, FIPS 180-4). A key may have any length.
std::string proof(std::string_view key, std::string_view message);

/// Compares two proofs in a time that depends on their lengths only.
bool equal_proofs(std::string_view a, std::string_view b);

/// Returns `n` unpredictable random bytes. Throws Error{io} if the system provides none.
std::string random_bytes(std::size_t n);

}  // namespace ranks
