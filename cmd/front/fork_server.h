#pragma once
// A server, for the tests alone, that has loaded libtessera.so and forks a process for each run of
// a program. A run then takes a tenth of the time that loading LibTorch takes.
//
// The front of the program sends a Request and its descriptors over a socket, then the signals that
// it receives. The server answers with the status of the process, as waitpid() gives it, and kills
// the process when the front ends.

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace front {

/// The environment variable that names the folder of the servers' sockets.
inline constexpr const char* kForkServers = "TESSERA_FORK_SERVERS";

/// Returns the path of the server's socket in `folder`. Its name is a hash of all that a forked
/// process has from the server and a loaded one has from its parent: the file `library`, the
/// variables that libraries read while they are loaded, the limits, user, namespaces and
/// processors. So a front finds no server that differs in any of them.
std::string socket_path(const std::string& folder, const std::string& library);

/// A run of a program.
struct Request {
  std::vector<std::string> arguments = {};    ///< the program's name in libtessera.so, then argv
  std::vector<std::string> environment = {};  ///< NAME=value
  mode_t mask = 0;                            ///< umask
  std::uint64_t ignored = 0;                  ///< bit S - 1: signal S is ignored
  std::uint64_t blocked = 0;                  ///< bit S - 1: signal S is blocked
  std::vector<int> descriptors = {};  ///< numbers of the descriptors sent after the first two

  /// Writes this into a memory file and returns its descriptor, or -1.
  int write() const;
  static Request read(int file);
};

inline constexpr std::size_t kMostDescriptors = 200;

/// Runs the program in a fork server and returns its exit code, or ends as it ended if that was by
/// a signal. Returns nothing if the environment names no server for this process.
std::optional<int> forked(const char* program, int argc, char** argv);

}  // namespace front
