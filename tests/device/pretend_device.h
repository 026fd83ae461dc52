#pragma once
// A pretended device for machines without a GPU. LibTorch sees a device like CUDA, with streams and
// pinned memory, whose operators run on the CPU on copies. Mixing its tensors with CPU tensors is
// an error, and every wait of the host is recorded. Data copied to pinned memory without waiting
// are NaN until the host waits for a later event or for the whole device.

#include <functional>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/kernels/cuda_kernels.h"

namespace pretend {

/// Returns the device. From the first call on, LibTorch uses it as its accelerator. In
/// deterministic mode it refuses what CUDA would refuse.
torch::Device device();

/// Returns what the host has waited for since the last call, in order, as "copy to the host" and
/// the like: values read, sizes that depend on values, copies from the device, and copies to the
/// device that are blocking or not from pinned memory. Waits on the threads of the autograd engine
/// count too.
std::vector<std::string> take_waits();

/// Copies to the device since the last call, and the number of them that used their own stream.
struct Copies {
  int all = 0, beside = 0;
};
Copies take_copies();

/// Records the work of all threads on the device from begin() to end(). replay() repeats it on the
/// same memory. The recording itself is the first replay. Each replay draws anew from the current
/// state of LibTorch's generator. Operations that CUDA cannot record are errors: a wait, and a copy
/// from the host, whose memory may be reused later.
nn::GraphCalls graphs();

/// Adds a kernel that LibTorch does not know to the recording.
void note_kernel(std::function<void()> kernel);

}  // namespace pretend
