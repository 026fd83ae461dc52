// timings.jsonl of a run on a device.

#include <doctest/doctest.h>

#include "device/recording.h"
#include "unit/train/tiny.h"

namespace {

core::Json last_timing(const std::string& path) {
  std::string text = core::read_text(path + "/timings.jsonl");
  text.pop_back();
  return core::parse_json(text.substr(text.rfind('\n') + 1), path);
}

}  // namespace

DOCTEST_TEST_CASE("timings tell whether the device's work is recorded, and its peak memory") {
  const TemporaryFolder folder;
  std::vector<std::uint64_t> tokens;
  for (std::uint64_t i = 0; i < 1201; ++i) tokens.push_back(i * 7 % 40);
  data::write_shard(folder / "text", data::tokens_header(40), tokens, {tokens.size()});
  auto job = tiny::job(folder);
  job.recipe.batches.batches = "shuffled";
  job.recipe.steps = 6;
  job.model.shape.layers = 1;
  DOCTEST_CHECK(tiny::train(folder / "cpu", job) == train::Outcome::finished);
  const auto on_cpu = last_timing(folder / "cpu");
  DOCTEST_CHECK_FALSE(on_cpu.contains("graph"));
  DOCTEST_CHECK_FALSE(on_cpu.contains("device_peak_bytes"));

  job.device = pretend::device();
  nn::CudaKernels kernels = pretend::recording_kernels();
  kernels.peak_memory = [](int device) { return std::int64_t{12345} + device; };
  // Much faster than the emulated kernel.
  kernels.adam = [](const nn::AdamSpan* spans, std::int64_t count, void*) {
    for (std::int64_t i = 0; i < count; ++i) nn::adam_cpu(spans[i], 0, spans[i].n);
    return 0;
  };
  const nn::AsDevice as(&kernels, job.device.type());
  DOCTEST_CHECK(tiny::train(folder / "on", job) == train::Outcome::finished);
  job.record = false;
  DOCTEST_CHECK(tiny::train(folder / "off", job) == train::Outcome::finished);
  DOCTEST_CHECK(last_timing(folder / "on")["graph"] == true);
  DOCTEST_CHECK(last_timing(folder / "off")["graph"] == false);
  DOCTEST_CHECK(last_timing(folder / "on")["device_peak_bytes"] == 12345);
}

DOCTEST_TEST_CASE("a kernel that does not start is told with CUDA's words") {
  nn::CudaKernels kernels;
  kernels.error_text = [](int error) { return error == 9 ? "invalid configuration" : "another"; };
  const nn::AsDevice as(&kernels);
  nn::check_launch(0, "adam");
  DOCTEST_CHECK_THROWS_WITH(
      nn::check_launch(9, "adam"), "cannot launch adam: CUDA error 9 (invalid configuration)");
}
