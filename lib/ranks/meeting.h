#pragma once
// Rendezvous of the ranks of a run: rank 0 serves a key-value store until all ranks are connected.
// On one machine the store is a Unix socket in the abstract namespace, accessible only to processes
// of the same user; on several machines it is a TCP socket on the address of MASTER_ADDR.
//
// A rank must prove that it knows the name and size of the run, and the key if there is one, before
// it may read or store values; rank 0 proves this to the rank too. Other clients are disconnected
// after ten seconds. At most 64 unauthenticated connections are open at once, and they do not delay
// the ranks.
// Rendezvous file for ranks without a network address from the launcher.

#include <chrono>

#include "core/launcher.h"

namespace ranks {

class Meeting {
 public:
  /// Rank 0 listens when the constructor returns; other ranks are connected to rank 0. Throws
  /// Error{unavailable} if another program uses the address, std::exception if rank 0 is not
  /// reached within `timeout`.
  Meeting(const core::Launch& launch, std::chrono::milliseconds timeout);
  ~Meeting();
  Meeting(Meeting&&) = delete;

  /// Stores a value; each key can be set once. Each rank may store at most 64 + 2 size keys, and
  /// values of 64 KiB + 4 KiB size in total.
  void set(const std::string& key, const std::string& value);
  /// Waits for a value. Throws std::exception after `timeout`.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);
  /// Closes all sockets and clears all values. Later calls of set() and get() throw.
  void close();

 private:
  class Server;
  class Client;
  std::unique_ptr<Server> server_;  // on rank 0
  std::unique_ptr<Client> client_;  // on the other ranks
};

/// The name of the file in the run's folder, before that of the launch. The file is removed when
/// all ranks have joined; files of killed runs may be deleted.
inline constexpr const char* kMeetingFile = ".ranks.";

}  // namespace ranks
