#include "nn/memory/target_loss.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace nn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
  static Tensor forward(AutogradContext* context, const Tensor& f, const Tensor& head,
                        const TaughtRows* rows) {
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

Tensor target_loss(const Tensor& f, const Batch& batch, Head& head, const Teachers& teachers,
                   double beta, const LossWork& work) {
  if (!head.linear())
    core::fail(core::Code::usage,
               "targets of a teacher are not supported with an adaptive softmax");
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
