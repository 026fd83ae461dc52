#pragma once
// Process-wide setup for programs that compute with LibTorch.
// Notes for the user about choices that a library function made.
// Compares the LibTorch version of the build with the loaded one.
// Distinguishes memory exhaustion from inconsistent tensors: LibTorch throws c10::Error for both.

#include "core/options.h"
#include "nn/base/torch.h"

namespace nn {

/// Option that selects the device.
struct DeviceOptions {
  std::string device = "auto";
  void fields(core::FieldList& f);
};

/// Options for the device and the type of the weights.
struct ComputeOptions : DeviceOptions {
  std::string precision = "float32";
  void fields(core::FieldList& f);
};

/// Sets threads and seed, flushes denormals to zero, selects MKL's functions, and keeps the
/// allocator from returning memory between steps. Call it before the program starts a second thread
/// and before device(). `say` receives notes for the user. Throws Error{unavailable} if the loaded
/// LibTorch differs from the version of the build (runtime.h).
void start(std::int64_t threads, std::uint64_t seed,
    std::function<void(const std::string&)> say = nullptr);

/// Makes the allocator return every block of 1 MiB or more to the system as soon as it is freed,
/// unlike start(): for runs that must fit into memory rather than save page faults.
void return_memory();

/// Returns the device "cpu", "cuda", "cuda:1" or "auto" (cuda if available). Loads CUDA if
/// requested, or if auto finds an NVIDIA driver; if auto cannot use the GPU, a note says so once. A
/// device with a number becomes the current device of the calling thread. Throws Error{unavailable}
/// that names the missing part.
torch::Device device(const std::string& name);
/// Sets the rank of this process among the processes of a run on this machine, from 0. device()
/// assigns GPUs accordingly; see device_of().
void set_local_rank(std::int64_t local);
/// Returns the device of local rank `local`, given the requested `device` and the `count` of such
/// devices: a device without a number gets the number local mod count; others are unchanged.
torch::Device device_of(torch::Device device, std::int64_t local, std::int64_t count);
/// Makes GPUs give identical bytes for identical work, at some cost in speed; operators that cannot
/// throw c10::Error. Call it before any computation on the GPU. The CPU is always deterministic.
void set_deterministic(bool on);
/// Returns the type of --dtype: float64 or bfloat16; float32 for other names.
torch::Dtype dtype(const std::string& precision);

/// Passes a line to the `say` of start(), if set.
void say(const std::string& text);

/// Returns the version of the loaded LibTorch, such as "2.13.0"; "" for versions before 2.9, which
/// do not report it.
std::string loaded_torch();

/// Checks that two versions "MAJOR.MINOR.PATCH" agree in MAJOR.MINOR, because LibTorch keeps the
/// layout of its types only within a minor version. `loaded` may be "" (a version before 2.9).
/// Throws Error{unavailable} that names both versions if they differ.
void expect_torch(const std::string& built, const std::string& loaded);

/// Returns whether an allocation failed, on the CPU or on a device. A handler of c10::Error that
/// blames a file must rethrow such an error.
inline bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string_view text = error.what_without_backtrace();
  return text.find("can't allocate memory") != text.npos ||
         text.find("not enough memory") != text.npos;
}

/// Says, once a process, that the processor has no products in bfloat16, which `option` requests,
/// and the `effect`: if `device` is a CPU without them, or ATEN_CPU_CAPABILITY hides them.
void note_half_products(const std::string& option, const std::string& effect, torch::Device device);

}  // namespace nn
