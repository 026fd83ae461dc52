// An update on a device waits for nothing: no number is fetched from it, no size depends on one. On
// the CPU, which plays the device, numbers of the batch's places are integers and truth values in
// host memory, and may be looked at; floating-point ones may not. Compiled as LibTorch is, with
// NDEBUG (cmake/Tests.cmake): what it tells of an operator's inputs is laid out otherwise without.

#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "nn/base/cuda.h"
#include "train/learner.h"
#include "unit/train/tiny.h"

namespace {

std::atomic<int> g_waits{0};

// Sizes that depend on numbers: only what has an element a token of the batch is the device's.
std::atomic<std::int64_t> g_tokens{0};

bool waits(const at::RecordFunction& function) {
  const auto is = [&](const char* name) { return std::strcmp(function.name(), name) == 0; };
  const bool fetches = is("aten::_local_scalar_dense"), sizes = is("aten::nonzero");
  if (!fetches && !sizes) return is("aten::masked_select") || is("aten::equal");
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor()) return true;
  const auto& x = inputs[0].toTensor();
  return fetches ? x.is_floating_point() : x.numel() >= g_tokens;
}

std::unique_ptr<at::ObserverContext> look(const at::RecordFunction& function) {
  if (waits(function)) ++g_waits;
  return nullptr;
}

// What `work` would wait for.
template <class F>
int waits_of(const F& work) {
  g_waits = 0;
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(look).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return g_waits;
}

}  // namespace

DOCTEST_TEST_CASE("an update on a device fetches nothing from it") {
  const nn::CudaKernels emulated = nn::linked_cuda_kernels();
  const auto x = torch::rand({3});
  DOCTEST_CHECK(waits_of([&] { x.sum().item<float>(); }) == 1);
  DOCTEST_CHECK(waits_of([&] { x.gt(0.5).nonzero(); }) == 1);
  for (const std::string arch : {"transformer", "transformer-xl", "srupp", "gla", "mosaic"}) {
    for (const std::string memory : {"none", "local,long"}) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(memory);
      const data::Folder folder;
      tiny::write_text(folder / "text");
      auto job = tiny::job(folder);
      job.model.arch = arch;
      job.recipe.objective.memory = memory;
      job.recipe.optimiser.clip = 1;
      nn::start(1, 1);
      auto run = train::prepare(job);
      // Emulated kernels take their time: for one of the two.
      const nn::AsDevice device(memory == "none" ? &emulated : nullptr);
      train::Learner learner(run.model, run.recipe, run.order->carries(), 1, torch::kCPU);
      for (std::int64_t step = 0; step < 2; ++step) {
        const auto micro = train::read_batch(*run.data, run.order->rows(step), step);
        const auto update = [&] { learner.update(step, {micro}); };
        g_tokens = micro.batch.inputs.numel();
        DOCTEST_CHECK(waits_of(update) == 0);
      }
    }
  }
}
