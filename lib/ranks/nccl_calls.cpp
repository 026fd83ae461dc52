#include "ranks/nccl_calls.h"

#include <dlfcn.h>

#include "core/launcher.h"

namespace ranks::nccl {
namespace {

template <class F> void find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(library, (std::string("nccl") + name).c_str()));
  if (function == nullptr)
    core::fail(
        core::Code::unavailable, "NCCL: nccl{} is missing; NCCL 2.7 or newer is needed", name);
}

Calls load() {
  const char* const named = core::own_environment("TESSERA_NCCL");
  const char* const file = named != nullptr ? named : "libnccl.so.2";
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    core::fail(core::Code::unavailable, "NCCL cannot be loaded ({})", why != nullptr ? why : file);
  }
  Calls calls{};
  find(library, "GetVersion", calls.GetVersion);
  find(library, "GetUniqueId", calls.GetUniqueId);
  find(library, "CommInitRank", calls.CommInitRank);
  find(library, "CommDestroy", calls.CommDestroy);
  find(library, "CommAbort", calls.CommAbort);
  find(library, "CommGetAsyncError", calls.CommGetAsyncError);
  find(library, "GetErrorString", calls.GetErrorString);
  find(library, "AllReduce", calls.AllReduce);
  find(library, "ReduceScatter", calls.ReduceScatter);
  find(library, "AllGather", calls.AllGather);
  find(library, "Send", calls.Send);
  find(library, "Recv", calls.Recv);
  find(library, "GroupStart", calls.GroupStart);
  find(library, "GroupEnd", calls.GroupEnd);
  return calls;
}

}  // namespace

const Calls& calls() {
  static const Calls all = load();
  return all;
}

}  // namespace ranks::nccl
