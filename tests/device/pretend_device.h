#pragma once
// A device where there is none: for LibTorch one as CUDA is, with streams and pinned memory, whose
// operators are the CPU's on copies. What is not on it is another device's, so that mixing them is
// an error, and everything that the host would wait for is seen. What is copied to pinned memory
// without waiting is no number there until an event behind it is waited for, or all of the device.

#include <functional>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/kernels/cuda_kernels.h"

namespace pretend {

/// From the first call on LibTorch takes it for its accelerator. Where LibTorch is to be
/// deterministic it refuses what CUDA would.
torch::Device device();

/// What the host has waited for since the last call: numbers fetched, sizes that depend on numbers,
/// copies from the device, and copies to it that are not from pinned memory or are waited for. In
/// order, "copy to the host" and the like. Waits on the threads of the autograd engine count too.
std::vector<std::string> take_waits();

/// Copies to the device since the last call, and how many of them were made in a stream of their
/// own.
struct Copies {
  int all = 0, beside = 0;
};
Copies take_copies();

/// Records what is started on the device from begin() to end(), in all threads, and does it again
/// on the same memory: replay(). It is done while it is recorded too, which is the first replay.
/// What is drawn is drawn anew, from LibTorch's generator as it stands then. What CUDA could
/// not record is an error: a wait, and a copy from the host, which has its memory for itself later
/// on.
nn::GraphCalls graphs();

/// Part of what graphs() records: a kernel that LibTorch knows nothing of.
void note_kernel(std::function<void()> kernel);

}  // namespace pretend
