// eval/datastore: tokens a second of evaluation with a datastore (joint and interpolated, one
// search for both), beside the same model without one, turn by turn. 8 layers, d 512, 32,768 words,
// windows of 512 advancing by 256; 2 M random keys, the index that build-datastore chooses, k 1024,
// nprobe 32.
//
// usage: bench_eval_datastore [ROWS [FOLDER]]; prints a JSON line. Making the store takes minutes
// and 2.5 GB; a FOLDER keeps it for the next time.

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "infer/memory/stores.h"
#include "infer/score/scorer.h"
#include "nn/base/runtime.h"
#include "shard/writer.h"
#include "store/builder.h"

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWords = 32'768, kWidth = 512, kTokens = 8'193;
constexpr int kTurns = 3;

nn::Model make_model() {
  nn::ModelOptions options;
  options.arch = "transformer";
  options.shape.layers = 8, options.shape.d_model = kWidth, options.shape.heads = 8;
  options.transformer.positions = "sinusoidal";
  nn::Model model(options, kWords);
  model.eval();
  return model;
}

void write_text(const std::string& path) {
  core::Rng rng(1);
  core::Output out(path);
  shard::Header header;
  header.dtype = shard::dtype_for(kWords), header.vocabulary = kWords;
  shard::Writer writer(out, header);
  std::vector<std::uint32_t> tokens(kTokens);
  for (auto& token : tokens) token = static_cast<std::uint32_t>(rng.below(kWords));
  writer.write(std::span<const std::uint32_t>(tokens));
  writer.end_document(kTokens, kTokens);
  writer.finish();
  out.commit();
}

void write_store(const std::string& folder, std::uint64_t rows) {
  store::Plan plan;
  plan.width = kWidth, plan.vocabulary = kWords, plan.data = "random";
  plan.windows["window"] = 512;
  store::Builder builder(folder, plan, false);
  if (builder.complete()) return;
  constexpr std::int64_t kBlock = 1 << 14;
  for (std::uint64_t row = builder.rows(); row < rows;) {
    const auto n = std::min<std::int64_t>(kBlock, static_cast<std::int64_t>(rows - row));
    const torch::Tensor keys = torch::randn({n, kWidth});
    const torch::Tensor labels = torch::randint(kWords, {n}, torch::kInt32);
    builder.add({keys.const_data_ptr<float>(), static_cast<std::size_t>(keys.numel())},
                {labels.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(n)});
    row += static_cast<std::uint64_t>(n);
  }
  builder.commit(rows);
  const std::vector<std::int64_t> documents = {0};
  builder.finish(documents);
}

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
    options.memory = "none", options.combine = "both";
    const std::vector<std::string> folders = {folder};
    const infer::MemoryPlan bare,
        memory = infer::plan_memory(
            options, windows, model, {},
            std::make_shared<const infer::Stores>(folders, "", "", "model", kWidth, kWords));
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
        with, (*memory.stores.opened)[0].manifest().index, without, with / without);
  }
  fs::remove_all(work);
}
