// eval/datastore: tokens per second of evaluation with a datastore (joint and interpolated, one
// search for both), compared with the same model without one. Runs alternate. The model has 8
// layers, d 512 and 32,768 tokens; windows of 512 advance by 256. The store has 2 M random keys and
// the index that build-datastore chooses; k is 1024, nprobe 32.
//
// usage: bench_eval_datastore [ROWS [FOLDER]]; prints a JSON line. Building the store takes minutes
// and 2.5 GB; FOLDER keeps it for the next run.

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "infer/score/scorer.h"
#include "infer/sources/context_source.h"
#include "infer/sources/store_source.h"
#include "nn/base/runtime.h"
#include "random_store.h"

namespace {

namespace fs = std::filesystem;
using namespace random_store;  // NOLINT: a program of one file

constexpr int kTurns = 3;

}  // namespace

int main(int argc, char** argv) {
  nn::start(get_nprocs(), 1);
  const std::uint64_t rows = argc > 1 ? std::stoull(argv[1]) : 2'000'000;
  std::string work = fs::temp_directory_path() / "eval-datastore.XXXXXX";
  if (::mkdtemp(work.data()) == nullptr) return 1;
  const std::string folder = argc > 2 ? argv[2] : work + "/store";
  write_text(work + "/text.shard.zst");
  write_store(folder, rows);
  {
    nn::Model model = make_model();
    const shard::Dataset data({work + "/text.shard.zst"});
    infer::WindowPlan windows;
    windows.window = 512, windows.stride = 256;
    infer::MemoryOptions options;
    options.weights = "constant";
    auto& context = options.of<infer::ContextOptions>();
    context.memory = "none", context.combine = "both";
    const std::vector<std::string> folders = {folder};
    infer::OpenMemories open;
    open.of<infer::OpenStores>().opened = std::make_shared<const infer::Stores>(
        infer::open_each(folders, torch::empty({0})), "", "", "model", kWidth, kWords);
    const infer::MemoryPlan bare, memory = infer::plan_memory(options, windows, model, {}, open);
    const auto speed = [&](const infer::MemoryPlan& with) {
      return infer::score(model, data, windows, with, torch::kCPU).tokens_per_s();
    };
    std::vector<double> ours, plain;
    for (int turn = 0; turn < kTurns; ++turn) {
      plain.push_back(speed(bare));
      ours.push_back(speed(memory));
    }
    const double with = *std::max_element(ours.begin(), ours.end());
    const double without = *std::max_element(plain.begin(), plain.end());
    fmt::print(
        "{{\"name\":\"eval/datastore\",\"value\":{:.6g},\"unit\":\"tokens/s\",\"peer\":\"the bare "
        "model ({})\",\"peer_value\":{:.6g},\"ratio\":{:.4g}}}\n",
        with, (*memory.of<infer::StorePlan>().opened)[0].manifest().index, without, with / without);
  }
  fs::remove_all(work);
}
