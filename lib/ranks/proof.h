#pragma once
// Proofs of knowledge of a shared key, which never send the key.
// Listening sockets of this process that a library opened and does not expose.

#include "core/base.h"

namespace ranks {

/// The length of a proof, in bytes.
inline constexpr std::size_t kProofBytes = 32;

/// Returns HMAC-SHA-256 of `message` under `key` (RFC 2104, FIPS 180-4). A key may have any length.
std::string proof(std::string_view key, std::string_view message);

/// Compares two proofs in a time that depends on their lengths only.
bool equal_proofs(std::string_view a, std::string_view b);

/// Returns `n` unpredictable random bytes. Throws Error{io} if the system provides none.
std::string random_bytes(std::size_t n);

/// Returns the descriptors of all sockets of this process that listen for TCP connections.
std::vector<int> listeners();

/// Makes the system drop all packets to these listening sockets, so that no process can connect.
/// The sockets remain open, and accepted connections continue. On systems without socket filters
/// the call has no effect.
void stop_accepting(const std::vector<int>& sockets);

}  // namespace ranks
