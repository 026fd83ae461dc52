// eval/gated: tokens per second of evaluation with a gated datastore that is searched for the half
// of the tokens with the highest gate weight. It is compared with a constant weight and a search
// for every token. Runs alternate. Model and store are those of eval_datastore: tokens and keys are
// random, so the best weight is about zero, and the gate learns this.
//
// usage: bench_eval_gated [ROWS [FOLDER]]; prints a JSON line, and the losses on stderr. Building
// the store takes minutes and 2.5 GB; FOLDER, which may be eval_datastore's, keeps it for the next
// run.

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "infer/score/tune.h"
#include "infer/sources/context_source.h"
#include "infer/sources/store_source.h"
#include "nn/base/runtime.h"
#include "random_store.h"

namespace {

namespace fs = std::filesystem;
using namespace random_store;  // NOLINT: a program of one file

constexpr int kTurns = 3;

// Returns the median of the stores' weight before a search.
double median_share(nn::Model& model, const shard::Dataset& data, const infer::WindowPlan& windows,
    infer::MemoryPlan plan) {
  std::vector<double> shares;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    const auto some = infer::search_shares(plan.gates.gate, scored.parts.confidence);
    shares.insert(
        shares.end(), some.const_data_ptr<double>(), some.const_data_ptr<double>() + some.numel());
  };
  infer::score(model, data, windows, plan, torch::kCPU, watch);
  std::nth_element(shares.begin(), shares.begin() + std::ssize(shares) / 2, shares.end());
  return shares[shares.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(get_nprocs(), 1);
  const std::uint64_t rows = argc > 1 ? std::stoull(argv[1]) : 2'000'000;
  std::string work = fs::temp_directory_path() / "eval-gated.XXXXXX";
  if (::mkdtemp(work.data()) == nullptr) return 1;
  const std::string folder = argc > 2 ? argv[2] : work + "/store";
  write_text(work + "/valid.shard.zst", 2);
  write_text(work + "/text.shard.zst");
  write_store(folder, rows);
  {
    nn::Model model = make_model();
    const shard::Dataset valid({work + "/valid.shard.zst"}), data({work + "/text.shard.zst"});
    infer::WindowPlan windows;
    windows.window = 512, windows.stride = 256;
    infer::MemoryOptions options;
    options.weights = "constant";
    auto& context = options.of<infer::ContextOptions>();
    context.memory = "none", context.combine = "interpolate";
    const std::vector<std::string> folders = {folder};
    infer::OpenMemories open;
    open.of<infer::OpenStores>().opened = std::make_shared<const infer::Stores>(
        infer::open_each(folders, torch::empty({0})), "", "", "model", kWidth, kWords);
    options.of<infer::StoreOptions>().folders = folders;
    auto gated = infer::plan_memory(options, windows, model, {}, open);
    gated.gates.sources = {"datastore"};
    gated = infer::tune(model, valid, windows, gated, {}, torch::kCPU).memory;
    auto constant = gated;
    constant.gates = {};
    gated.gates.threshold = median_share(model, valid, windows, gated);
    std::vector<double> ours, plain;
    infer::Totals with, without;
    for (int turn = 0; turn < kTurns; ++turn) {
      without = infer::score(model, data, windows, constant, torch::kCPU);
      with = infer::score(model, data, windows, gated, torch::kCPU);
      plain.push_back(without.tokens_per_s());
      ours.push_back(with.tokens_per_s());
    }
    const double fast = *std::max_element(ours.begin(), ours.end());
    const double slow = *std::max_element(plain.begin(), plain.end());
    fmt::print(stderr, "eval/gated: loss {:.6f} with {} searches, {:.6f} with {}\n", with.loss(),
        with.searches->made, without.loss(), without.tokens);
    fmt::print(
        "{{\"name\":\"eval/gated\",\"value\":{:.6g},\"unit\":\"tokens/s\",\"peer\":\"a constant "
        "share, a search a token\",\"peer_value\":{:.6g},\"ratio\":{:.4g}}}\n",
        fast, slow, fast / slow);
  }
  fs::remove_all(work);
}
