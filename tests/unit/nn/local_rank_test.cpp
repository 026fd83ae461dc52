// The device that each process of a run uses on a machine.

#include <doctest/doctest.h>

#include <map>

#include "core/launcher.h"
#include "device/pretend_device.h"
#include "nn/base/runtime.h"

namespace {

// Returns the local rank from a launcher's variables.
std::int64_t local_rank(const std::map<std::string, std::string>& variables) {
  return core::launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }).local;
}

std::int64_t under_torchrun(const std::string& local) {
  return local_rank({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", local},
      {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}});
}

std::int64_t under_srun(const std::string& local) {
  return local_rank({{"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "5"},
      {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", local}, {"SLURM_STEP_NODELIST", "n[1-2]"}});
}

}  // namespace

DOCTEST_TEST_CASE("each rank of a machine has a device of its own, as long as there are some") {
  for (const auto& type : {torch::kCUDA, pretend::device().type()}) {
    const torch::Device any(type);
    for (std::int64_t local = 0; local < 4; ++local) {
      const auto own = static_cast<c10::DeviceIndex>(local);
      for (const auto rank :
          {under_torchrun(std::to_string(local)), under_srun(std::to_string(local))}) {
        DOCTEST_CHECK(nn::device_of(any, rank, 4) == torch::Device(type, own));
        DOCTEST_CHECK(nn::device_of(any, rank, 2) == torch::Device(type, own % 2));
        DOCTEST_CHECK(nn::device_of(any, rank, 1) == torch::Device(type, 0));
        DOCTEST_CHECK(nn::device_of({type, 3}, rank, 4) == torch::Device(type, 3));
        DOCTEST_CHECK(nn::device_of(torch::kCPU, rank, 0) == torch::Device(torch::kCPU));
      }
    }
  }
}
