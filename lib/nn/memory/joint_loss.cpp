#include "nn/memory/joint_loss.h"

#include "nn/base/cuda.h"
#include "nn/memory/memory_block.h"

namespace nn {
namespace {

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
      const Tensor& /*keys*/, at::TensorList /*weights*/, const Problem* problem) {
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
      core::bug("the gradient of this loss was already computed");
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
                         std::ranges::any_of(weights, &Tensor::requires_grad));
  if (!problem.gradient) return sum_blocks(rows, queries, problem).loss.to(dtype);
  return JointLoss::apply(rows, queries, keys, at::TensorList(weights), &problem);
}

constexpr double kRounding = 1e-5;  // of a teacher's probabilities, which are float32

// Rows of the batch, flattened.
struct TaughtRows {
  Tensor targets, weight, words, shares;
  double beta;
  std::int64_t block;
};

struct TaughtSums {
  Tensor loss, df, d_words;  // scalar double; (N, d); (V, d)
};

// Computes a block of scores and replaces it by its gradient in place. With T the tokens that the
// teacher names and r the rest of its probability:
//  dL/ds_v = q_v - (1 - beta) [v = target] - beta (p_v + [v not in T] r q_v / sum of others' q).
void add_block(const Tensor& f, const Tensor& head, const TaughtRows& rows, std::int64_t begin,
    std::int64_t end, bool gradient, TaughtSums& sums) {
  const Tensor block = f.slice(0, begin, end);
  const Tensor weight = rows.weight.slice(0, begin, end);
  const Tensor target = rows.targets.slice(0, begin, end).unsqueeze(1);
  const Tensor words = rows.words.slice(0, begin, end);
  Tensor p = rows.shares.slice(0, begin, end).to(f.scalar_type());
  const Tensor named = p.sum(1, /*keepdim=*/true);
  const Tensor beta = (named > 0).to(f.scalar_type()) * rows.beta;  // (R, 1): 0 without a teacher
  Tensor rest = (1 - named) * (named > 0);
  rest = rest.masked_fill(rest < kRounding, 0);
  Tensor scores = block.mm(head.t());  // (R, V)
  const Tensor log_z = scores.logsumexp(1, /*keepdim=*/true);
  const Tensor log_q = scores.gather(1, words) - log_z;
  const Tensor seen = p > 0;
  // The mass of all other tokens, summed directly: 1 - (mass of the named tokens) would cancel.
  const bool open = rest.gt(0).any().item<bool>();
  Tensor log_others = torch::zeros_like(log_z);
  if (open) {
    // Unused places hold a token id too. The mask covers it only if it is named elsewhere.
    const Tensor mask = torch::zeros_like(scores).scatter_add_(1, words, seen.to(f.scalar_type()));
    log_others = scores.masked_fill(mask > 0, -HUGE_VAL).logsumexp(1, /*keepdim=*/true) - log_z;
  }
  const Tensor divergence =
      (torch::xlogy(p, p) - torch::where(seen, p * log_q, torch::zeros_like(p)))
          .sum(1, /*keepdim=*/true) +
      torch::where(rest > 0, torch::xlogy(rest, rest) - rest * log_others, torch::zeros_like(rest));
  const Tensor own = scores.gather(1, target) - log_z;
  const Tensor loss = beta * divergence - (1 - beta) * own;
  sums.loss.add_((loss.squeeze(1) * weight).sum(torch::kFloat64));
  if (!gradient) return;
  const Tensor q_over = torch::where(rest > 0, rest * torch::exp(-log_others),
      torch::zeros_like(rest));  // r / sum of others' q
  Tensor d = scores.sub_(log_z).exp_();
  const Tensor at_named = beta * (q_over * log_q.exp() * seen - p);
  if (open) d.mul_(1 - beta * q_over);
  d.scatter_add_(1, words, at_named);
  d.scatter_add_(1, target, beta - 1);
  d.mul_(weight.unsqueeze(1));
  sums.df.slice(0, begin, end).copy_(d.mm(head));
  sums.d_words.addmm_(d.t(), block);
}

TaughtSums sum_rows(const Tensor& f, const Tensor& head, const TaughtRows& rows, bool gradient) {
  const torch::NoGradGuard no_gradient;
  TaughtSums sums;
  sums.loss = torch::zeros({}, f.options().dtype(torch::kFloat64));
  if (gradient) {
    sums.df = torch::empty_like(f);
    sums.d_words = torch::zeros_like(head);
  }
  for (std::int64_t begin = 0; begin < f.size(0); begin += rows.block)
    add_block(f, head, rows, begin, std::min(begin + rows.block, f.size(0)), gradient, sums);
  return sums;
}

class TargetLoss : public torch::autograd::Function<TargetLoss> {
 public:
  static Tensor forward(
      AutogradContext* context, const Tensor& f, const Tensor& head, const TaughtRows* rows) {
    const TaughtSums sums = sum_rows(f, head, *rows, true);
    context->saved_data["df"] = sums.df;
    context->saved_data["d_words"] = sums.d_words;
    return sums.loss.to(f.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& d_loss) {
    const auto scaled = [&](const char* name) {
      return context->saved_data.at(name).toTensor() * d_loss[0];
    };
    return {scaled("df"), scaled("d_words"), Tensor()};
  }
};

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

Tensor smoothed_loss(
    const Tensor& f, const Batch& batch, Head& head, double smoothing, const LossWork& work) {
  if (smoothing > 0 && !head.linear())
    core::bad_usage("label smoothing is not supported with an adaptive softmax");
  Problem problem = problem_of(batch, head, work);
  problem.smoothing = head.vocabulary() > 1 ? smoothing : 0;
  return solve(f, {}, problem);
}

Tensor join(const RowScores& s) {
  return torch::logaddexp(s.log_prob + s.log_z, s.positive) - torch::logaddexp(s.log_z, s.all);
}

Tensor target_loss(const Tensor& f, const Batch& batch, Head& head, const Teachers& teachers,
    double beta, const LossWork& work) {
  if (!head.linear())
    core::bad_usage("targets of a teacher are not supported with an adaptive softmax");
  const Tensor words = head.weights()[0];
  TaughtRows rows;
  rows.targets = batch.targets.flatten();
  rows.weight =
      batch.weight.flatten().to(torch::TensorOptions(words.scalar_type()).device(f.device()));
  rows.words = teachers.words.flatten(0, 1).to(f.device());
  rows.shares = teachers.shares.flatten(0, 1).to(f.device());
  rows.beta = beta;
  // 12 bytes per score: the scores, the mask of named tokens, and the scores without them.
  rows.block = std::clamp<std::int64_t>(work.block_bytes / (12 * head.vocabulary()), 16, 4096);
  const Tensor flat = f.flatten(0, 1).to(words.scalar_type());
  if (!torch::GradMode::is_enabled() || !(flat.requires_grad() || words.requires_grad()))
    return sum_rows(flat, words, rows, false).loss.to(words.scalar_type());
  return TargetLoss::apply(flat, words, &rows);
}

}  // namespace nn
