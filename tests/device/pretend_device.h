#pragma once
// A device where there is none: for LibTorch one as CUDA is, with streams and pinned memory, whose
// operators are the CPU's on copies. What is not on it is another device's, so that mixing them is
// an error, and everything that the host would wait for is seen. What is copied to pinned memory without
// waiting is no number there until an event behind it is waited for, or all of the device.

#include <string>
#include <vector>

#include "nn/base/torch.h"

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

}  // namespace pretend
