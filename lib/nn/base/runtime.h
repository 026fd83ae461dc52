#pragma once
// What every program that computes with torch sets first.

#include <cstdint>
#include <functional>
#include <string>

#include "core/options.h"
#include "nn/base/torch.h"

namespace nn {

/// Where a program computes.
struct DeviceOptions {
  std::string device = "auto";
  void fields(core::FieldList& f);
};

/// Where, and in what the weights are.
struct ComputeOptions : DeviceOptions {
  std::string precision = "float32";
  void fields(core::FieldList& f);
};

/// Threads, seed, denormals flushed to zero, MKL's functions chosen, and the allocator kept from
/// giving memory back between steps. Before a program has a second thread, and before device(),
/// which tells `say` what a user should know. Throws Error{unavailable} where the loaded LibTorch
/// is not the one that the program was built for (torch_version.h).
void start(std::int64_t threads, std::uint64_t seed,
           std::function<void(const std::string&)> say = nullptr);

/// "cpu", "cuda", "cuda:1", or "auto" (cuda if there is one). Loads CUDA where it is asked for, or
/// where auto finds a driver of NVIDIA's; one that auto cannot use is told, once. A device with a
/// number is the calling thread's current one from here on, so that nothing is begun on another.
/// Throws Error{unavailable} naming what is missing.
torch::Device device(const std::string& name);
/// Which of the processes that share a machine's GPUs for one run this is, from 0: device() gives
/// each its own, as device_of() says.
void set_local_rank(std::int64_t local);
/// The device of local rank `local` where `device` is asked for and the machine has `count` of its
/// type: one without a number is number local mod count; others stay.
torch::Device device_of(torch::Device device, std::int64_t local, std::int64_t count);
/// Whether GPUs are to give the same bytes for the same work, at the price of some speed; what
/// cannot throws c10::Error. Before anything was computed there. The CPU always does.
void set_deterministic(bool on);
/// "float32", "float64" or "bfloat16", what --precision takes.
torch::Dtype dtype(const std::string& precision);

}  // namespace nn
