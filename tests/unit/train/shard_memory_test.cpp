// What the tensors of a process take in a step, counted at each allocation, against --plan. The
// process's own size would also count what the allocator keeps.

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "nn/base/recomputing.h"
#include "train/learner.h"
#include "train/plan.h"
#include "unit/ranks/processes.h"
#include "unit/train/tiny.h"

namespace {

// Counts the bytes of the tensors that this thread allocates and frees.
struct TensorBytes : c10::MemoryReportingInfoBase {
  std::int64_t now = 0, peak = 0;
  void reportMemoryUsage(void* /*block*/, std::int64_t size, std::size_t /*allocated*/,
      std::size_t /*reserved*/, c10::Device /*device*/) override {
    now += size;
    peak = std::max(peak, now);
  }
  bool memoryProfilingEnabled() const override { return true; }
};

// Three blocks of 12.6 MB: more than a bucket of gradients.
train::Job large_job(const TemporaryFolder& folder, const std::string& shard) {
  auto job = tiny::job(folder);
  job.model.shape.layers = 3, job.model.shape.d_model = 512, job.model.shape.heads = 4;
  job.model.shape.dropout = 0;
  job.recipe.batches.batch = 1, job.recipe.batches.accumulate = 2;
  job.thrift.shard = shard;
  return job;
}

// The most bytes of tensors on this rank, from the model's creation to the second step's end, and
// what --plan says.
std::string bytes_of_rank(ranks::Group& rank, const train::Job& job) {
  const std::shared_ptr<ranks::Group> group(&rank, [](ranks::Group*) {});
  const auto bytes = std::make_shared<TensorBytes>();
  const c10::DebugInfoGuard counting(c10::DebugInfoKind::PROFILER_STATE, bytes);
  auto run = train::prepare(job);
  run.recipe.settle_reduce(/*on_devices=*/false);
  const auto weights = run.model->named_weights();
  const auto planned = train::rank_bytes(weights,
      dynamic_cast<nn::LendingBlocks&>(*run.model->architecture).block_weights(),
      run.recipe.optimiser, {2, ranks::Sum::tree, false}, rank.size(), job.thrift.sharded());
  train::Learner learner(run.model, run.recipe, run.order->carries(), run.seed, torch::kCPU, group,
      run.record, run.part, run.thrift);
  for (std::int64_t step = 0; step < 2; ++step)
    learner.update(step, {train::read_batch(*run.data, run.order->rows(rank.rank()), rank.rank())});
  return fmt::format("{} {}", bytes->peak, planned.weights + planned.gradients + planned.optimiser);
}

}  // namespace

DOCTEST_TEST_CASE("two ranks: tensors take the bytes that --plan says, for each --shard") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  std::map<std::string, double> most;
  for (const std::string shard : {"none", "optimiser", "gradients", "weights"}) {
    DOCTEST_CAPTURE(shard);
    for (const auto& ended : run_ranks(2,
             [&](ranks::Group& group) { return bytes_of_rank(group, large_job(folder, shard)); })) {
      DOCTEST_CAPTURE(ended.text);
      DOCTEST_REQUIRE(ended.code == 0);
      std::istringstream numbers(ended.text);
      double bytes = 0, planned = 0;
      numbers >> bytes >> planned;
      DOCTEST_CHECK(bytes > 0.85 * planned);
      DOCTEST_CHECK(bytes < 1.05 * planned);
      most[shard] = std::max(most[shard], bytes);
    }
  }
  constexpr double kWeights = 4 * 9.4e6;                             // bytes
  DOCTEST_CHECK(most["none"] - most["optimiser"] > 0.9 * kWeights);  // half of two moments
}
