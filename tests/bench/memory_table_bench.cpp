// memory-table/ROWS: an update of a memory layer's table (ROWS, 64) on the CPU: sums of 16 rows for
// each of 2,048 tokens, backward, the gradient's norm and AdamW, which steps the rows that were
// read. Beside it PyTorch's way: embedding_bag with weights, whose gradient is a whole table, and
// torch's AdamW over all of it; and embedding_bag with a sparse gradient, coalesced, and the steps
// of torch.optim.SparseAdam in its operators, which has no decay. By the clock and in seconds of
// CPU.
//
// usage: bench_memory_table [TURNS]; prints JSON lines

#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "measured.h"
#include "nn/base/runtime.h"
#include "nn/ops/gathered_sum.h"
#include "train/optimiser.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kTokens = 2048, kEntries = 16, kWidth = 64;

struct Lookups {
  Tensor rows, weights, direction;
  explicit Lookups(std::int64_t rows_of_table)
      : rows(torch::randint(rows_of_table, {kTokens, kEntries}, torch::kInt64)),
        weights(torch::softmax(torch::randn({kTokens, kEntries}), 1)),
        direction(torch::randn({kTokens, kWidth})) {}
};

Tensor table_of(std::int64_t rows) { return torch::randn({rows, kWidth}).requires_grad_(); }

std::function<void()> ours(std::int64_t rows) {
  const auto table = table_of(rows);
  const std::shared_ptr<train::Optimiser> optimiser =
      train::make_optimiser({}, {{"transformer.memory_pool.values", table}});
  return [=] {
    const Lookups in(rows);
    table.mutable_grad().reset();
    (nn::gathered_sum(table, in.rows, in.weights) * in.direction).sum().backward();
    const auto norm = train::gradient_norm(optimiser->weights());
    optimiser->step(1e-3, (1 / (norm + 1e-6)).clamp_max(1));
  };
}

Tensor bags(const Tensor& table, const Lookups& in, bool sparse) {
  return std::get<0>(
      at::embedding_bag(table, in.rows.flatten(), torch::arange(0, kTokens * kEntries, kEntries),
          /*scale_grad_by_freq=*/false, /*mode=*/0, sparse, in.weights.flatten()));
}

std::function<void()> whole_table(std::int64_t rows) {
  const auto table = table_of(rows);
  const auto optimiser = std::make_shared<torch::optim::AdamW>(
      std::vector<Tensor>{table}, torch::optim::AdamWOptions(1e-3).weight_decay(0.1));
  return [=] {
    const Lookups in(rows);
    table.mutable_grad().reset();
    (bags(table, in, false) * in.direction).sum().backward();
    const torch::NoGradGuard no_grad;
    table.mutable_grad().mul_((1 / (table.grad().norm() + 1e-6)).clamp_max(1));
    optimiser->step();
  };
}

std::function<void()> sparse_adam(std::int64_t rows) {
  const auto table = table_of(rows), mean = torch::zeros_like(table.detach()),
             square = torch::zeros_like(mean);
  const auto updates = std::make_shared<int>(0);
  return [=] {
    const Lookups in(rows);
    table.mutable_grad().reset();
    (bags(table, in, true) * in.direction).sum().backward();
    const torch::NoGradGuard no_grad;
    const auto gradient = table.grad().coalesce();
    const auto at = gradient.indices()[0];
    const auto g = gradient.values() * (1 / (gradient.values().norm() + 1e-6)).clamp_max(1);
    const double t = ++*updates;
    const auto m = mean.index_select(0, at).mul_(0.9).add_(g, 0.1),
               v = square.index_select(0, at).mul_(0.999).addcmul_(g, g, 0.001);
    Tensor(mean).index_copy_(0, at, m), Tensor(square).index_copy_(0, at, v);
    const double step = 1e-3 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    Tensor(table.detach()).index_add_(0, at, m / (v.sqrt() + 1e-8), -step);
  };
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(2, 1);
  torch::manual_seed(1);
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  for (const std::int64_t rows : {1 << 14, 1 << 20}) {
    const std::function<void()> ways[] = {ours(rows), whole_table(rows), sparse_adam(rows)};
    std::vector<double> clock[3], cpu[3];
    for (const auto& way : ways) way();
    for (int turn = 0; turn < turns; ++turn)
      for (std::size_t way = 0; way < 3; ++way) {
        const auto begin = std::clock();
        clock[way].push_back(bench::seconds_of(ways[way]));
        cpu[way].push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      }
    const auto name = "memory-table/" + std::to_string(rows);
    for (std::size_t way = 1; way < 3; ++way) {
      const std::string peer = way == 1 ? "embedding_bag, AdamW of the whole table"
                                        : "embedding_bag sparse, SparseAdam's operators";
      const double own = median(clock[0]), other = median(clock[way]);
      bench::print(name, own, "s", peer, other, other / own);
      const double own_cpu = median(cpu[0]), other_cpu = median(cpu[way]);
      bench::print(name + " cpu", own_cpu, "s", peer, other_cpu, other_cpu / own_cpu);
    }
  }
}
