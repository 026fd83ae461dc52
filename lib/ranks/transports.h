#pragma once
// The libraries that move tensors between ranks.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/transport.h"

namespace ranks {

/// What a transport between devices is made of.
struct Connection {
  std::int64_t rank = 0, size = 1;
  torch::Device device = torch::kCPU;
  std::chrono::milliseconds timeout{};
  std::string ticket;  ///< rank 0's, the same on all ranks
};

struct Library {
  std::string_view name;
  /// Loads the library; throws Error{unavailable} that names what is missing. Returns this rank's
  /// ticket, of which rank 0's counts. Null: tensors of devices are copied to the host.
  std::string (*load)(bool first);
  /// Connects all ranks. Throws std::exception.
  std::unique_ptr<Transport> (*connect)(const Connection& connection);
};

/// Returns all libraries.
const std::vector<Library>& libraries();
/// Returns the library of this name. Throws Error{usage} if there is none.
const Library& library(const std::string& name);

/// NCCL, of libnccl.so.2 or the file that the environment variable TESSERA_NCCL names.
std::string load_nccl(bool first);
std::unique_ptr<Transport> connect_nccl(const Connection& connection);

}  // namespace ranks
