#pragma once
// Listening sockets of this process that a library opened and does not expose.

#include <vector>

namespace ranks {

/// Returns the descriptors of all sockets of this process that listen for TCP connections.
std::vector<int> listeners();

/// Makes the system drop all packets to these listening sockets, so that no process can connect.
/// The sockets remain open, and accepted connections continue. On systems without socket filters
/// the call has no effect.
void stop_accepting(const std::vector<int>& sockets);

}  // namespace ranks
