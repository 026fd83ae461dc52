#pragma once
// The functions of NCCL's C interface that are used here, with declarations of our own, so that
// programs neither need its header nor link it. Prototypes and numbers are those of nccl.h of
// NCCL 2.7 and later.

#include "core/base.h"

namespace ranks::nccl {

struct Comm;       // ncclComm
struct UniqueId {  // ncclUniqueId
  char bytes[128];
};
using Result = int;    // ncclResult_t, an enumeration
using Type = int;      // ncclDataType_t
using Operator = int;  // ncclRedOp_t
using Stream = void*;  // cudaStream_t

inline constexpr Result kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7;
inline constexpr Type kUint8 = 1, kFloat32 = 7, kFloat64 = 8;
inline constexpr Operator kSum = 0;

struct Calls {
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRank)(Comm** comm, int size, UniqueId id, int rank);
  Result (*CommDestroy)(Comm* comm);
  Result (*CommAbort)(Comm* comm);
  Result (*CommGetAsyncError)(Comm* comm, Result* error);
  const char* (*GetErrorString)(Result result);
  Result (*AllReduce)(const void* in, void* out, std::size_t count, Type type, Operator op,
      Comm* comm, Stream stream);
  Result (*ReduceScatter)(const void* in, void* out, std::size_t count_of_each, Type type,
      Operator op, Comm* comm, Stream stream);
  Result (*AllGather)(
      const void* in, void* out, std::size_t count_of_each, Type type, Comm* comm, Stream stream);
  Result (*Send)(const void* from, std::size_t count, Type type, int to, Comm* comm, Stream stream);
  Result (*Recv)(void* to, std::size_t count, Type type, int from, Comm* comm, Stream stream);
  Result (*GroupStart)();
  Result (*GroupEnd)();
};

/// Loads the library once. Throws Error{unavailable} that names the library or the function that is
/// missing.
const Calls& calls();

}  // namespace ranks::nccl
