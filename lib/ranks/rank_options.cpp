#include "ranks/rank_options.h"

#include <filesystem>

#include "core/units.h"
#include "ranks/transport.h"

namespace ranks {

void RankOptions::fields(core::FieldList& f) {
  const auto in_processes = f.group("Processes");
  f("ranks", ranks,
      "launcher: this process is one of several that srun, torchrun or mpirun started for one run",
      {"none", "launcher"});
  f("rank-timeout", timeout, "time (H:M:S) that a rank waits for another before it exits with 76");
}

void BackendOptions::fields(core::FieldList& f) {
  const auto in_processes = f.group("Processes");
  f("rank-backend", backend,
      "library that moves tensors of GPUs between ranks: nccl; gloo, through the host; auto: nccl on "
      "GPUs if all ranks have it",
      {"auto", "gloo", "nccl"});
}

std::string connect(Group& group, const BackendOptions& options, torch::Device device) {
  if (group.is_alone()) return "";
  expect_agreement(
      group, {{"rank-backend", options.backend}, {"device", device.is_cpu() ? "cpu" : "cuda"}});
  if (options.backend == "gloo") return "";
  if (options.backend == "nccl") {
    // A library that is named may serve the CPU (tests/nccl).
    if (device.is_cpu() && core::own_environment("TESSERA_NCCL") == nullptr)
      core::bad_usage("--rank-backend nccl: connects GPUs; give --device cuda or leave it out");
    group.connect("nccl", device);
    return "";
  }
  if (!device.is_cuda()) return "";
  std::string why;
  try {
    library("nccl").load(/*first=*/false);
  } catch (const core::Error& error) { why = error.what(); }
  if (group.any(why.empty() ? 0 : 1) == 0) {
    group.connect("nccl", device);
    return "";
  }
  return fmt::format("ranks add gradients through the host, not by NCCL: {}",
      why.empty() ? "another rank lacks it" : why);
}

std::shared_ptr<Group> join(const RankOptions& options, const std::string& folder) {
  if (!options.any()) return Group::alone();
  double seconds = 0;
  try {
    seconds = core::parse_duration_s(options.timeout);
  } catch (const core::Error& error) {
    core::fail(error.code(), "--rank-timeout: {}", error.what());
  }
  if (seconds < 1) core::bad_usage("--rank-timeout: takes at least one second");
  try {
    return Group::join(core::launch(), folder,
        std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds)));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::usage) throw;
    core::bad_usage("--ranks {}", error.what());
  }
}

void expect_files(const std::vector<std::string>& files) {
  if (files.empty() || std::find(files.begin(), files.end(), "-") != files.end())
    core::bad_usage("FILE: several ranks cannot share stdin; give files");
  for (const auto& file : files)
    if (std::filesystem::is_fifo(file))
      core::bad_usage("{}: several ranks cannot share a pipe; give files", file);
}

std::shared_ptr<Group> join_beside(const RankOptions& options, const std::string& output) {
  const auto folder = std::filesystem::path(output).parent_path().string();
  return join(options, folder.empty() ? "." : folder);
}

}  // namespace ranks
