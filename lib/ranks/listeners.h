#pragma once
// The listening sockets of this process, which a library made and does not show.

#include <vector>

namespace ranks {

/// Returns the descriptors of all sockets of this process that listen for TCP connections.
std::vector<int> listeners();

/// Makes the system drop whatever reaches these listening sockets from now on, so that nobody can
/// connect. The sockets stay open; connections that were accepted before go on. A system that has
/// no socket filters leaves the sockets as they are.
void stop_accepting(const std::vector<int>& sockets);

}  // namespace ranks
