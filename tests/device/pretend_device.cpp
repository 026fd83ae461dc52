#include "device/pretend_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace pretend {
namespace {

using torch::Tensor;

// A device type that LibTorch defines without code. The type for out-of-tree backends is
// unsuitable: torch::nn::Module cannot be moved there.
constexpr auto kType = c10::DeviceType::HPU;
const c10::DispatchKeySet kKeys(c10::DispatchKey::HPU);

std::atomic<bool> g_there{false};  // whether the device has been requested
std::mutex g_mutex;
std::vector<std::string> g_waits;
Copies g_copies;
thread_local int t_inside =
    0;  // an operator of the CPU's, whose copies are the device's own affair
thread_local c10::StreamId t_stream = 0;

// A recording of graphs().
struct Recording {
  std::vector<std::function<void()>> work;
  bool done = true;  // false: the recording did not run it
  // State of the generator at the first draw, from which the first replay draws.
  Tensor generator = at::globalContext().defaultGenerator(torch::kCPU).get_state();
};
std::atomic<Recording*> g_recording{nullptr};

// Work on another stream, such as the copy of the next batch, is not recorded.
bool records() { return g_recording != nullptr && t_stream == 0; }

void note_work(std::function<void()> work) {
  if (t_inside > 0 || !records()) return;
  const std::lock_guard lock(g_mutex);
  g_recording.load()->work.push_back(std::move(work));
}

void note_wait(const std::string& what) {
  if (t_inside > 0) return;
  TORCH_CHECK(!records(), what, " cannot be recorded");
  const std::lock_guard lock(g_mutex);
  g_waits.push_back(what);
}

class Inside {
 public:
  Inside() { ++t_inside; }
  ~Inside() { --t_inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Blocks of the pinned allocator, the only allocator that remembers its blocks.
std::set<const void*> g_pinned;

// Pending copies to pinned memory. The data arrive when the host waits for a later event or for the
// whole device.
struct Late {
  Tensor to, from;
};
std::vector<Late> g_late;                // destroyed before g_pinned, which has its blocks
std::size_t g_arrived = 0, g_asked = 0;  // total numbers of copies

void arrive(std::size_t before) {
  std::vector<Late> now;
  {
    const std::lock_guard lock(g_mutex);
    while (g_arrived < before) {
      now.push_back(g_late[0]);
      g_late.erase(g_late.begin());
      ++g_arrived;
    }
  }
  for (const auto& [to, from] : now) to.copy_(from);
}
void arrive_all() { arrive(g_asked); }

void free_block(void* block) { std::free(block); }
// Recorded work uses its memory again.
void keep_block(void* block) {
  static std::vector<void*> kept;
  const std::lock_guard lock(g_mutex);
  kept.push_back(block);
}
void free_pinned(void* block) {
  {
    const std::lock_guard lock(g_mutex);
    g_pinned.erase(block);
  }
  std::free(block);
}

class Memory : public c10::Allocator {
 public:
  Memory(c10::Device device, void (*release)(void*)) : device_(device), release_(release) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const block = bytes > 0 ? std::malloc(bytes) : nullptr;
    if (block != nullptr && release_ == free_pinned) {
      const std::lock_guard lock(g_mutex);
      g_pinned.insert(block);
    }
    return {block, block, release_ == free_block && records() ? keep_block : release_, device_};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release_; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  c10::Device device_;
  void (*release_)(void*);
};

Memory g_memory(c10::Device(kType, 0), free_block), g_pinned_memory(c10::kCPU, free_pinned);

struct Hooks : at::HPUHooksInterface {
  explicit Hooks(at::HPUHooksArgs) {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return g_there; }
  bool hasHPU() const override { return g_there; }
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &g_pinned_memory; }
  bool isPinnedPtr(const void* data) const override {
    const std::lock_guard lock(g_mutex);
    return g_pinned.count(data) > 0;
  }
};

// One device whose streams run at once: work is done before the host continues.
struct Guard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return {kType, 0}; }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(t_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(1); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(1); }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return stream(std::exchange(t_stream, to.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    *event = reinterpret_cast<void*>(1 + g_asked);  // any value except null
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void* event) const override {
    note_wait("an event");
    arrive(reinterpret_cast<std::size_t>(event) - 1);
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {
    note_wait("a stream");
    arrive_all();
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    note_wait("the device");
    arrive_all();
  }

 private:
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, 0}, id);
  }
};

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
    std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &g_memory, kKeys, c10::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
    std::optional<at::ScalarType> type, std::optional<at::Layout>, std::optional<at::Device>,
    std::optional<bool>) {
  return at::detail::empty_strided_generic(
      sizes, strides, &g_memory, kKeys, c10::dtype_or_default(type));
}

// Returns a view for the CPU's operators.
Tensor as_cpu(const Tensor& x) {
  auto made =
      torch::from_blob(x.data_ptr(), x.sizes(), x.strides(), x.options().device(torch::kCPU));
  made._set_conj(x.is_conj());
  return made;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (to.is_cpu() && non_blocking && t_inside == 0 && to.is_pinned()) {
    std::memset(to.data_ptr(), 0xff, to.nbytes());  // NaN until the data arrive
    const std::lock_guard lock(g_mutex);
    g_late.push_back({to, as_cpu(from).clone()});
    ++g_asked;
    return to;
  }
  if (to.is_cpu()) {
    note_wait("copy to the host");
    if (t_inside == 0) arrive_all();
  } else if (from.is_cpu() && t_inside == 0) {
    if (!non_blocking || (from.numel() > 0 && !from.is_pinned()))
      note_wait(non_blocking ? "copy from memory that is not pinned" : "copy that is waited for");
    const std::lock_guard lock(g_mutex);
    ++g_copies.all;
    g_copies.beside += t_stream != 0;
  }
  TORCH_CHECK(
      !from.is_cpu() || t_inside > 0 || !records(), "a copy from the host cannot be recorded");
  const auto copy = [from, to] {
    if (from.numel() > 0) as_cpu(to).copy_(as_cpu(from).expand_as(to));
  };
  note_work(copy);
  copy();
  return to;
}

Tensor& copy(Tensor& to, const Tensor& from, bool non_blocking) {
  copy_from(from, to, non_blocking);
  return to;
}

// Resizes only empty tensors, which are results to be filled.
const Tensor& resized(const Tensor& x, at::IntArrayRef sizes, std::optional<at::MemoryFormat>) {
  if (x.sizes() == sizes) return x;
  TORCH_CHECK(x.numel() == 0, "a tensor of this device keeps its size");
  x.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  const auto bytes = static_cast<std::size_t>(x.numel()) * x.itemsize();
  x.storage().set_data_ptr_noswap(g_memory.allocate(bytes));
  x.storage().set_nbytes(bytes);
  return x;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  return copy_from(from, resized(to, from.sizes(), std::nullopt), false);
}

at::Scalar fetch(const Tensor& x) {
  note_wait("a number");
  return as_cpu(x).item();
}

// Returns whether the size of the result depends on values.
bool must_wait(const std::string& name, const torch::jit::Stack& inputs) {
  static const std::set<std::string> all = {"aten::nonzero", "aten::masked_select", "aten::_unique",
      "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::bincount",
      "aten::repeat_interleave", "aten::equal"};
  if (all.count(name) > 0) return true;
  for (const auto& input : inputs) {  // an index that is a mask
    if (!input.isOptionalTensorList()) continue;
    for (const std::optional<Tensor>& index : input.toOptionalTensorList())
      if (index && index->defined() && index->scalar_type() == torch::kBool) return true;
  }
  return false;
}

// Refuses operators that CUDA cannot compute deterministically.
void expect_deterministic(const std::string& name, const torch::jit::Stack& inputs) {
  static const std::set<std::string> all = {"aten::cumsum", "aten::cumprod", "aten::put_"};
  if (all.count(name) > 0 && inputs.at(0).isTensor() && inputs[0].toTensor().is_floating_point())
    at::globalContext().alertNotDeterministic(name);
}

// Copies the result of an operator to where the recording put it.
void put_again(const c10::IValue& from, const c10::IValue& to) {
  if (to.isTensor()) {
    const Tensor &made = from.toTensor(), &there = to.toTensor();
    if (there.defined() && made.data_ptr() != there.data_ptr()) as_cpu(there).copy_(as_cpu(made));
  } else if (to.isTensorList()) {
    const auto made = from.toTensorVector(), there = to.toTensorVector();
    for (std::size_t i = 0; i < made.size(); ++i) put_again(made[i], there[i]);
  }
}

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& name = op.schema().name();
  const auto inputs = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  expect_deterministic(name, inputs);
  if (must_wait(name, inputs)) note_wait(name);
  {
    const Inside inside;
    at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
  }
  if (!records()) return;
  note_work([op, inputs, made = torch::jit::last(*stack, op.schema().returns().size()).vec()] {
    auto again = inputs;
    at::native::cpu_fallback(op, &again, /*error_on_views=*/true);
    for (std::size_t i = 0; i < made.size(); ++i) put_again(again[i], made[i]);
  });
}

void record_stream(Tensor&, at::Stream) {}

// Selects attention's plain operators instead of its kernels.
std::int64_t choose_attention(const Tensor&, const Tensor&, const Tensor&,
    const std::optional<Tensor>&, double, bool, std::optional<double>, bool) {
  return static_cast<std::int64_t>(at::SDPBackend::math);
}

using at::HPUHooksRegistry;
using at::RegistererHPUHooksRegistry;
C10_REGISTER_CLASS(HPUHooksRegistry, HPUHooks, Hooks)
C10_REGISTER_GUARD_IMPL(HPU, Guard)
REGISTER_ALLOCATOR(kType, &g_memory)

TORCH_LIBRARY_IMPL(_, HPU, all) {
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, HPU, own) {
  own.impl("empty.memory_format", TORCH_FN(empty));
  own.impl("empty_strided", TORCH_FN(empty_strided));
  own.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  own.impl("view", TORCH_FN(at::native::view));
  own.impl("unfold", TORCH_FN(at::native::unfold));
  own.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  own.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  own.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  own.impl("resize_", TORCH_FN(resized));
  own.impl("copy_", TORCH_FN(copy));
  own.impl("_copy_from", TORCH_FN(copy_from));
  own.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  own.impl("_local_scalar_dense", TORCH_FN(fetch));
  own.impl("record_stream", TORCH_FN(record_stream));
  own.impl("_fused_sdp_choice", TORCH_FN(choose_attention));
}

}  // namespace

torch::Device device() {
  g_there = true;
  return {kType, 0};
}

std::vector<std::string> take_waits() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_waits, {});
}

Copies take_copies() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_copies, {});
}

void note_kernel(std::function<void()> kernel) { note_work(std::move(kernel)); }

nn::GraphCalls graphs() {
  nn::GraphCalls calls;
  calls.begin = [](int) -> void* {
    TORCH_CHECK(g_recording == nullptr, "something is being recorded");
    g_recording = new Recording;
    return g_recording;
  };
  calls.end = [](void*) { g_recording = nullptr; };
  calls.replay = [](void* recording) {
    auto& all = *static_cast<Recording*>(recording);
    if (std::exchange(all.done, false)) return;
    const Inside inside;
    for (const auto& work : all.work) work();
  };
  calls.free = [](void* recording) {
    auto* const own = static_cast<Recording*>(recording);
    if (g_recording == own) {
      g_recording = nullptr;
      at::Generator(at::globalContext().defaultGenerator(torch::kCPU)).set_state(own->generator);
    }
    delete own;
  };
  return calls;
}

}  // namespace pretend
