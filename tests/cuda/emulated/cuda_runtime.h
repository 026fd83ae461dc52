#pragma once
// CUDA for a compiler without CUDA, as far as lib/nn/kernels/*.cu and their tests use it. A kernel
// runs on the CPU, one block at a time, its threads in turn. A thread runs until it waits for
// others (__syncthreads, a shuffle). The result of a kernel may therefore depend on the order of
// threads only if the kernel has a race: emulated::schedule chooses the order, and emulated::skip
// leaves a barrier out. Under ThreadSanitizer each thread is a separate thread, ordered by barriers
// alone. Memory comes from malloc, so AddressSanitizer detects accesses outside.
//
// Not checked: races between blocks, except that schedules run blocks in different orders.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define EMULATED_TEXT_(x) #x
#define EMULATED_TEXT(x) EMULATED_TEXT_(x)
#define __syncthreads() \
  emulated::wait_for_block(emulated::without_folders(__FILE__ ":" EMULATED_TEXT(__LINE__)))

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated {

/// The order of runnable threads and of blocks.
enum class Turns { forward, backward, random };
struct Schedule {
  Turns turns = Turns::forward;
  std::uint64_t seed = 0;
};
extern Schedule schedule;

/// The compiler's name of a file differs between objects that include it, so folders are removed.
constexpr const char* without_folders(const char* name) {
  const char* rest = name;
  for (; *name != '\0'; ++name)
    if (*name == '/') rest = name + 1;
  return rest;
}

/// Returns the barriers that kernels have reached since the last call, as file:line.
std::set<std::string> take_barriers();
/// The barrier that is left out.
extern std::string skip;

/// Runs `thread` for every thread of every block. Throws std::logic_error if threads wait for
/// threads that never arrive: they wait at another barrier or have ended.
void run(dim3 grid, dim3 block, const std::function<void()>& thread);

void wait_for_block(const char* barrier);
/// Returns the bits that lane `from` of this thread's warp passed. All lanes of the warp must call
/// it.
std::uint64_t exchange(unsigned mask, std::uint64_t bits, unsigned from);
unsigned lane();

template <class T> T shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulated

template <class T> T __shfl_sync(unsigned mask, T value, int lane) {
  return emulated::shuffle(mask, value, static_cast<unsigned>(lane) % warpSize);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return emulated::shuffle(mask, value, emulated::lane() ^ static_cast<unsigned>(lanes));
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned lanes) {
  const unsigned from = emulated::lane() + lanes;
  return emulated::shuffle(mask, value, from < warpSize ? from : emulated::lane());
}

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
using cudaStream_t = struct CUstream_st*;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
    const Arguments&... arguments) {
  emulated::run(config->gridDim, config->blockDim, [&] { kernel(arguments...); });
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* devices) {
  *devices = 1;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // both are null for an empty vector
  return cudaSuccess;
}
