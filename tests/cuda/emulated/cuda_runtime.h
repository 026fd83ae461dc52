#pragma once
// CUDA for a compiler without CUDA, as far as lib/nn/kernels/*.cu and their tests use it: a kernel
// runs on the CPU, a block at a time, its threads in turn. A thread runs until it waits for others
// (__syncthreads, a shuffle), so that what a kernel computes may depend on whose turn it is only
// where the kernel has a race: emulated::schedule chooses the turns, emulated::skip leaves a
// barrier out. Under ThreadSanitizer each thread is one of its own, ordered by barriers alone, and
// memory is malloc's, so that AddressSanitizer sees what lies outside.
//
// Not checked: races between blocks, other than that schedules run blocks in another order.

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

/// Whose turn it is, of threads that can run, and of blocks.
enum class Turns { forward, backward, random };
struct Schedule {
  Turns turns = Turns::forward;
  std::uint64_t seed = 0;
};
extern Schedule schedule;

/// A file is named as the compiler was given it, which differs between objects that include it.
constexpr const char* without_folders(const char* name) {
  const char* rest = name;
  for (; *name != '\0'; ++name)
    if (*name == '/') rest = name + 1;
  return rest;
}

/// The barriers that kernels have come to since the last call, as file:line.
std::set<std::string> take_barriers();
/// The one that lets everybody pass.
extern std::string skip;

/// Runs `thread` for every thread of every block. Throws std::logic_error where threads wait for
/// ones that never come: at another barrier, or gone.
void run(dim3 grid, dim3 block, const std::function<void()>& thread);

void wait_for_block(const char* barrier);
/// The bits that lane `from` of this thread's warp gives; all lanes of the warp call it.
std::uint64_t exchange(unsigned mask, std::uint64_t bits, unsigned from);
unsigned lane();

template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulated

template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return emulated::shuffle(mask, value, static_cast<unsigned>(lane) % warpSize);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return emulated::shuffle(mask, value, emulated::lane() ^ static_cast<unsigned>(lanes));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes) {
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
  if (bytes > 0) std::memcpy(to, from, bytes);  // of an empty vector both are null
  return cudaSuccess;
}
