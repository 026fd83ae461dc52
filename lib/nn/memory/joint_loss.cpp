#include "nn/memory/joint_loss.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/error.h"
#include "nn/base/cuda.h"
#include "nn/base/tf32.h"
#include "nn/memory/memory_block.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Problem {
  Targets targets;       // (N)
  Tensor weight;         // (N)
  TokenPositions place;  // (N)
  Head* head;
  MemoryRule rule;
  Entries entries;     // keys have f's type; empty without a memory
  std::int64_t steps;  // T: rows [n T, (n + 1) T) belong to one batch row
  LossWork work;
  bool gradient;
  std::optional<PositionPair> position_pair;  // of all rows, if a device's kernels read the memory
  double smoothing = 0;
  /// Weight of each token in the uniform part of label smoothing. The target also has 1 - smoothing
  /// - share().
  double share() const {
    return smoothing == 0 ? 0 : smoothing / static_cast<double>(head->vocabulary() - 1);
  }
};

// Maximum number of rows of a block. At least half of a block's scores against its own rows are
// hidden, and more if it holds several segments, so small blocks waste less. MemoryBlock divides a
// device's blocks further.
constexpr std::int64_t kRows = 4096, kRowsWithMemory = 512, kRowsThere = 1 << 14;

// Rows a block: as many as the budget allows, whole batch rows or equal parts of one, so that a
// block of a segment sees few entries outside it.
std::int64_t rows_per_block(const Problem& p, std::int64_t bytes_per_row) {
  const std::int64_t most = !in_host_memory(p.weight) ? kRowsThere
                            : p.rule.any()            ? kRowsWithMemory
                                                      : kRows;
  const std::int64_t rows = std::clamp<std::int64_t>(
      p.work.block_bytes / std::max<std::int64_t>(1, bytes_per_row), 16, most);
  if (rows >= p.steps) return rows / p.steps * p.steps;
  const std::int64_t parts = (p.steps + rows - 1) / rows;
  return (p.steps + parts - 1) / parts;
}

struct Sums {
  Tensor loss;  // scalar, double
  Tensor df, dg, d_keys;
  std::vector<Tensor> d_weights;
};

// Adds the uniform part's sum over rows and tokens of weight * share * score. The sum is linear in
// the scores f W^T and equals s . c, where s is the weighted sum of the rows and c the sum of the
// tokens' vectors. It needs no scores, and neither does its gradient: c for every row, s for every
// token.
void add_uniform_scores(const Tensor& f, const Problem& p, Sums& sums) {
  const torch::NoGradGuard no_grad;
  const Tensor words = p.head->weights()[0];
  const Tensor s = f.t().mv(p.weight).mul_(p.share()), c = words.sum(0);
  sums.loss.sub_(s.to(torch::kFloat64).dot(c.to(torch::kFloat64)));
  if (!p.gradient) return;
  sums.df.sub_(p.weight.mul(p.share()).outer(c));
  sums.d_weights[0].sub_(s);
}

// Computes loss and gradients in one pass over blocks of rows. Each block's scores are computed
// once, and its gradient is taken before they are freed.
Sums sum_blocks(const Tensor& f, const Tensor& g, const Problem& p) {
  const Tf32 products(p.work.tf32 && !f.is_cpu());
  const bool memory = p.rule.any();
  Sums sums;
  sums.loss = torch::zeros({}, f.options().dtype(torch::kFloat64));
  if (p.gradient) {
    sums.df = torch::empty_like(f);
    for (const Tensor& weight : p.head->weights())
      sums.d_weights.push_back(torch::zeros_like(weight));
    if (memory) sums.dg = torch::zeros_like(g);
    if (memory && p.rule.gradient) sums.d_keys = torch::zeros_like(p.entries.keys);
  }
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      rows_per_block(p, p.head->bytes_per_row() + (memory ? 6 * p.entries.size() : 0));
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    const Targets targets = p.targets.slice(begin, end);
    const Tensor weight = p.weight.slice(0, begin, end);
    const auto head = p.head->block(f.slice(0, begin, end), targets, p.gradient);
    if (!memory) {
      const double target = 1 - p.smoothing - p.share(),
                   normaliser = p.share() * static_cast<double>(p.head->vocabulary());
      sums.loss.sub_(head->log_prob.mul(weight).sum(torch::kFloat64), target);
      if (p.smoothing > 0) sums.loss.add_(head->log_z.mul(weight).sum(torch::kFloat64), normaliser);
      if (p.gradient)
        sums.df.slice(0, begin, end)
            .copy_(head->backward(weight * -target, weight * normaliser, sums.d_weights));
      continue;
    }
    std::optional<PositionPair> position_pair;
    if (p.position_pair) position_pair = p.position_pair->of(begin, end);
    MemoryBlock seen(g.slice(0, begin, end), p.place.slice(begin, end), targets.there, p.entries,
                     p.rule, position_pair ? &*position_pair : nullptr);
    const Tensor score = head->log_prob + head->log_z;
    const Tensor log_all = torch::logaddexp(head->log_z, seen.all),
                 log_target = torch::logaddexp(score, seen.positive);
    sums.loss.add_((log_all - log_target).mul(weight).sum(torch::kFloat64));
    if (!p.gradient) continue;
    const Tensor d_score = -(score - log_target).exp_().mul_(weight);  // through log p_head + z
    const Tensor d_z = (head->log_z - log_all).exp_().mul_(weight).add_(d_score);
    sums.df.slice(0, begin, end).copy_(head->backward(d_score, d_z, sums.d_weights));
    const Tensor d_all = (seen.all - log_all).exp_().mul_(weight);
    const Tensor d_positive = -(seen.positive - log_target).exp_().mul_(weight);
    sums.dg.slice(0, begin, end).copy_(seen.backward(d_all, d_positive, sums.d_keys));
  }
  if (p.smoothing > 0) add_uniform_scores(f, p, sums);
  return sums;
}

class JointLoss : public torch::autograd::Function<JointLoss> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& f, const Tensor& g,
                        const Tensor& /*keys*/, at::TensorList /*weights*/,
                        const Problem* problem) {
    Sums sums = sum_blocks(f, g, *problem);
    if (problem->gradient) {
      variable_list saved{sums.df, sums.dg, sums.d_keys};
      saved.insert(saved.end(), sums.d_weights.begin(), sums.d_weights.end());
      context->saved_data["gradients"] = saved;
    }
    return sums.loss.to(f.scalar_type());
  }

  // Scales the stored gradients in place and moves them out, so that only one copy exists.
  static variable_list backward(AutogradContext* context, const variable_list& d_loss) {
    const auto found = context->saved_data.find("gradients");
    if (found == context->saved_data.end())
      core::fail(core::Code::bug, "the gradient of this loss was already computed");
    auto list = found->second.toTensorVector();
    context->saved_data.erase(found);
    variable_list gradients;
    for (Tensor& gradient : list) {
      if (gradient.defined()) gradient.mul_(d_loss[0].to(gradient.scalar_type()));
      gradients.push_back(gradient);
    }
    gradients.emplace_back();  // for the argument `problem`
    return gradients;
  }
};

Problem problem_of(const Batch& batch, Head& head, const LossWork& work) {
  Problem problem;
  problem.targets.there = batch.targets.flatten();
  if (batch.host_targets.defined()) problem.targets.host = batch.host_targets.flatten();
  problem.weight = batch.weight.flatten();
  problem.place = batch.place.flatten();
  problem.head = &head;
  problem.steps = batch.steps();
  problem.work = work;
  return problem;
}

// Computes in the type of the head's weights. `g` is read only if the rule has a memory.
Tensor solve(const Tensor& f, const Tensor& g, Problem& problem) {
  auto weights = problem.head->weights();
  const auto dtype = weights.at(0).scalar_type();
  problem.weight = problem.weight.to(torch::TensorOptions().dtype(dtype).device(f.device()));
  const Tensor rows = f.flatten(0, 1).to(dtype);
  const bool memory = problem.rule.any();
  const Tensor queries = memory ? g.flatten(0, 1).to(dtype) : rows.new_empty({0});
  if (memory) problem.entries.keys = problem.entries.keys.to(dtype);
  const Tensor keys = memory ? problem.entries.keys : queries;
  if (memory && MemoryBlock::by_kernels(queries, problem.rule))
    problem.position_pair.emplace(problem.place, problem.entries.place, queries.device());
  problem.gradient = torch::GradMode::is_enabled() &&
                     (rows.requires_grad() || queries.requires_grad() || keys.requires_grad() ||
                      std::any_of(weights.begin(), weights.end(),
                                  [](const Tensor& w) { return w.requires_grad(); }));
  if (!problem.gradient) return sum_blocks(rows, queries, problem).loss.to(dtype);
  return JointLoss::apply(rows, queries, keys, at::TensorList(weights), &problem);
}

}  // namespace

std::int64_t loss_block_bytes(std::int64_t device_memory) {
  constexpr std::int64_t kLeast = 64 << 20, kMost = std::int64_t{4} << 30;
  return std::clamp(device_memory / 64, kLeast, kMost);
}

Tensor joint_loss(const Tensor& f, const Tensor& g, const Batch& batch, Head& head,
                  const MemoryRule& rule, const Entries& entries, const LossWork& work) {
  Problem problem = problem_of(batch, head, work);
  if (rule.any() && entries.size() > 0) problem.rule = rule, problem.entries = entries;
  return solve(f, g, problem);
}

Tensor smoothed_loss(const Tensor& f, const Batch& batch, Head& head, double smoothing,
                     const LossWork& work) {
  if (smoothing > 0 && !head.linear())
    core::fail(core::Code::usage, "label smoothing is not supported with an adaptive softmax");
  Problem problem = problem_of(batch, head, work);
  problem.smoothing = head.vocabulary() > 1 ? smoothing : 0;
  return solve(f, {}, problem);
}

Tensor join(const RowScores& s) {
  return torch::logaddexp(s.log_prob + s.log_z, s.positive) - torch::logaddexp(s.log_z, s.all);
}

}  // namespace nn
