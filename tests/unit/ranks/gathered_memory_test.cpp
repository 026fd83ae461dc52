// The joint loss over gathered keys, compared with two processes of torch.distributed on the same
// numbers (tests/golden/gathered_memory.py).

#include <doctest/doctest.h>

#include "core/io.h"
#include "nn/heads/softmax_heads.h"
#include "nn/memory/joint_loss.h"
#include "ranks/group.h"
#include "unit/ranks/processes.h"

namespace {

using core::Json;
using torch::Tensor;

// Converts a list of rows of numbers to a matrix.
Tensor matrix(const Json& rows) {
  std::vector<double> numbers;
  for (const auto& row : rows)
    for (const auto& number : row) numbers.push_back(number.get<double>());
  return torch::tensor(numbers, torch::kFloat64).view({std::ssize(rows), -1});
}

// Keys of other ranks arrive as float32.
constexpr double kClose = 1e-8;

// Returns the largest differences of the loss and of the gradients for this rank's share of the
// golden rows, in units of the tolerance.
std::string compare(ranks::Group& all, const Json& golden, ranks::KeyGradient gradient) {
  const std::int64_t rows = golden["rows"], steps = golden["steps"], tokens = rows * steps;
  const std::shared_ptr<ranks::Group> group(&all, [](ranks::Group*) {});
  const ranks::Team team(group, all.size());
  const auto own = [&](const Tensor& of) { return of.narrow(0, all.rank() * tokens, tokens); };
  const Tensor labels =
      torch::tensor(golden["labels"].get<std::vector<std::int64_t>>(), torch::kInt64);
  Tensor f = own(matrix(golden["f"])).clone().requires_grad_();
  Tensor g = own(matrix(golden["g"])).clone().requires_grad_();
  const Tensor weight = matrix(golden["head"]);
  nn::PlainHead head(weight.size(0), weight.size(1));
  head.to(torch::kFloat64);
  Tensor table = head.weights()[0];
  {
    const torch::NoGradGuard no_grad;
    table.copy_(weight);
  }

  const auto order = torch::arange(labels.numel());
  const nn::TokenPositions everywhere = {
      torch::zeros_like(order), order.div(steps, "floor"), order};
  const auto grid = [&](const Tensor& of) { return own(of).view({rows, steps}); };
  nn::Batch batch;
  batch.inputs = batch.targets = grid(labels);
  batch.weight = torch::ones({rows, steps}, torch::kFloat64);
  batch.place = {grid(everywhere.run), grid(everywhere.segment), grid(everywhere.position)};
  auto rule = nn::MemoryRule::parse("local,long");
  rule.temperature = golden["temperature"];
  const auto keys = team.gather(g, rows * all.size(), steps, gradient);
  const Tensor loss = nn::joint_loss(f.view({rows, steps, -1}), g.view({rows, steps, -1}), batch,
      head, rule, {keys, labels, everywhere});
  loss.backward();

  const Json& there = golden["ranks"][static_cast<std::size_t>(all.rank())];
  const auto apart = [](const Tensor& a, const Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  return std::to_string(
      std::max({std::abs(loss.item<double>() - there["loss"].get<double>()),
          apart(f.grad(), matrix(there["f"])), apart(g.grad(), matrix(there["g"])),
          apart(table.grad(), matrix(there["head"]))}) /
      kClose);
}

}  // namespace

DOCTEST_TEST_CASE("gathered memory: loss and gradients are those of fairseq's gathering") {
  const std::string path = "tests/golden/gathered_memory.json";
  const Json golden = core::parse_json(core::read_text(path), path);
  const auto apart = [&](ranks::KeyGradient gradient) {
    std::vector<double> all;
    for (const auto& rank :
        run_ranks(2, [&](ranks::Group& group) { return compare(group, golden, gradient); }))
      all.push_back(std::stod(rank.text));
    return all;
  };
  const auto own = apart(ranks::KeyGradient::own);
  DOCTEST_CHECK(own[0] < 1);
  DOCTEST_CHECK(own[1] < 1);
  // The first rank's keys are visible to the second's tokens too. Only there does the gradient
  // differ from that of one process.
  const auto all = apart(ranks::KeyGradient::all);
  DOCTEST_CHECK(all[0] > 1e6);
  DOCTEST_CHECK(all[1] < 1);
}
