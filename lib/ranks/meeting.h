#pragma once
// Where the ranks of one run meet until they are linked: rank 0 keeps keys and values for all. On
// one machine this is a Unix socket in the abstract namespace, which only processes of the same
// user may use; on several it is a TCP socket on the address of MASTER_ADDR alone.
//
// A rank proves that it knows the name and the size of the run, and the key if there is one, before
// it may store or read anything; rank 0 proves the same to it. Whoever does not is disconnected
// after ten seconds. At most 64 such connections are open at once, and none of them stops the
// ranks.

#include <chrono>
#include <memory>
#include <string>

#include "core/launcher.h"

namespace ranks {

class Meeting {
 public:
  /// Rank 0 listens when this returns; another rank has found rank 0. Throws Error{unavailable}
  /// where another program listens at the place, std::exception where rank 0 is not found in
  /// `timeout`.
  Meeting(const core::Launch& launch, std::chrono::milliseconds timeout);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Stores a value, once for each key. A rank may store 64 + 2 size keys, and 64 KiB + 4 KiB size
  /// of values, in all.
  void set(const std::string& key, const std::string& value);
  /// Waits for a value. Throws std::exception after `timeout`.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);
  /// Closes all sockets and forgets all values. set() and get() throw from then on.
  void close();

 private:
  class Server;
  class Client;
  std::unique_ptr<Server> server_;  // of rank 0
  std::unique_ptr<Client> client_;  // of the others
};

}  // namespace ranks
