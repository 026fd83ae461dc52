#include "nn/base/runtime.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cstdlib>
#include <mutex>

#include "core/build_info.h"
#include "nn/base/cuda.h"

namespace nn {
namespace {

struct Version {
  int major = 0, minor = 0;
  bool operator==(const Version&) const = default;
};

Version version_of(const std::string& text) {
  Version version;
  std::sscanf(text.c_str(), "%d.%d", &version.major, &version.minor);
  return version;
}

bool has_half_products() {
#if defined(__x86_64__)
  return at::get_cpu_capability() == "AVX512" && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return true;  // unknown
#endif
}

}  // namespace

void DeviceOptions::fields(core::FieldList& f) {
  const auto in_computing = f.group("Computing");
  f("device", device, "cpu, cuda, cuda:N, or auto: cuda if available");
}

void ComputeOptions::fields(core::FieldList& f) {
  const auto in_computing = f.group("Computing");
  DeviceOptions::fields(f);
  f("dtype", precision, "data type of the weights", {"float32", "float64", "bfloat16"});
}

namespace {

std::function<void(const std::string&)> g_say;
std::optional<std::int64_t> g_local_rank;

// Returns this process's device and makes it the current device.
torch::Device own_device(torch::Device asked) {
  if (!g_local_rank && !asked.has_index()) return asked;
  const auto count = static_cast<std::int64_t>(torch::cuda::device_count());
  const auto device = device_of(asked, g_local_rank.value_or(0), count);
  if (!asked.has_index() && count > 1 && *g_local_rank >= count)
    say(fmt::format(
        "another rank of this machine also uses {}; the machine has {} GPUs", device.str(), count));
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return device;
}

}  // namespace

void say(const std::string& text) {
  if (g_say) g_say(text);
}

void start(std::int64_t threads, std::uint64_t seed, std::function<void(const std::string&)> say) {
  g_say = std::move(say);
  expect_torch(core::build::kTorch, loaded_torch());
  // MKL detects the processor on the first call of a vector function and stores the result in two
  // steps. A thread that reads the first result gets a function of half the precision or for
  // another processor. This call runs while the process has one thread.
  torch::ones({1}).exp();
  // Page faults cost a training step 12 to 19 %. These settings keep large blocks in the heap and
  // never trim it.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  ::mallopt(M_TOP_PAD, 64 << 20);
  at::globalContext().setFlushDenormal(true);  // denormals slow a step down six times
  at::set_num_threads(static_cast<int>(threads));
  // torch::manual_seed would initialise CUDA devices; see cuda.h.
  auto generator = at::globalContext().defaultGenerator(torch::kCPU);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

void return_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
  ::mallopt(M_TOP_PAD, 1 << 20);
}

void set_local_rank(std::int64_t local) { g_local_rank = local; }

torch::Device device_of(torch::Device device, std::int64_t local, std::int64_t count) {
  if (device.is_cpu() || device.has_index() || count < 1) return device;
  return {device.type(), static_cast<c10::DeviceIndex>(local % count)};
}

torch::Device device(const std::string& name) {
  const auto cuda = [] {
    load_cuda();
    torch::manual_seed(at::globalContext().defaultGenerator(torch::kCPU).current_seed());
  };
  if (name == "auto") {
    if (!has_nvidia_driver()) return torch::kCPU;
    try {
      cuda();
      return own_device(torch::kCUDA);
    } catch (const core::Error& error) {
      say(fmt::format("computing on the CPU, not on the NVIDIA device: {}", error.what()));
      return torch::kCPU;
    }
  }
  std::optional<torch::Device> device;
  try {
    device = torch::Device(name);
  } catch (const c10::Error&) {}
  if (!device || (!device->is_cpu() && !device->is_cuda()))
    core::bad_usage("--device: '{}' is not a device; use cpu, cuda or auto", name);
  if (device->is_cpu()) return *device;
  try {
    cuda();
  } catch (const core::Error& error) {
    core::fail(error.code(), "--device {}: {}", name, error.what());
  }
  if (device->index() >= torch::cuda::device_count())
    core::fail(core::Code::unavailable, "--device {}: there are {} CUDA devices", name,
        torch::cuda::device_count());
  return own_device(*device);
}

void set_deterministic(bool on) {
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(on, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);  // no code reads uninitialised memory
  context.setDeterministicCuDNN(on);
  // cuBLAS reads the variable when it creates its first workspace.
  if (on) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

torch::Dtype dtype(const std::string& precision) {
  if (precision == "float64") return torch::kFloat64;
  return precision == "bfloat16" ? torch::kBFloat16 : torch::kFloat32;
}

// Looks the function up by name, so that a LibTorch without it gives an error message instead of a
// loader failure.
std::string loaded_torch() {
  using AbiVersion = std::uint64_t (*)();
  const auto abi = reinterpret_cast<AbiVersion>(::dlsym(RTLD_DEFAULT, "aoti_torch_abi_version"));
  if (abi == nullptr) return "";
  const std::uint64_t version = abi();  // one byte each: major, minor, patch
  return fmt::format("{}.{}.{}", version >> 56U, version >> 48U & 0xffU, version >> 40U & 0xffU);
}

void expect_torch(const std::string& built, const std::string& loaded) {
  const Version own = version_of(built), other = version_of(loaded);
  const bool neither_tells = loaded.empty() && own.major == 2 && own.minor < 9;
  if (neither_tells || own == other) return;
  core::fail(core::Code::unavailable,
      "built for LibTorch {}, but loaded {}; set LD_LIBRARY_PATH to the first, or rebuild for "
      "the second (LIBTORCH=DIR make)",
      built, loaded.empty() ? "an older one" : loaded);
}

void note_half_products(
    const std::string& option, const std::string& effect, torch::Device device) {
  static bool said = false;
  if (!device.is_cpu() || has_half_products() || std::exchange(said, true)) return;
  say(fmt::format(
      "{}: this processor has no products in bfloat16 (AVX-512 BF16); {}", option, effect));
}

}  // namespace nn
