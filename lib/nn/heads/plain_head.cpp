#include "nn/heads/plain_head.h"

#include "nn/layers/layers.h"
#include "nn/ops/softmax_rows.h"

namespace nn {
namespace {

/// Returns scores (R, V) in the accumulation type.
torch::Tensor scores_of(
    const torch::Tensor& f, const torch::Tensor& weight, const torch::Tensor& bias) {
  auto scores = f.to(weight.scalar_type()).mm(weight.t()).to(accumulation_type(weight));
  return bias.defined() ? scores.add_(bias) : scores;
}

class PlainBlock : public HeadBlock {
 public:
  PlainBlock(const torch::Tensor& weight, const torch::Tensor& bias, const torch::Tensor& f,
      const torch::Tensor& targets, bool gradient)
      : weight_(weight) {
    softmax_ = row_softmax_(scores_of(f, weight, bias), targets);
    log_prob = softmax_.log_prob;
    log_z = softmax_.log_z;
    if (!gradient) {
      softmax_.exp.reset();
      return;
    }
    f_ = f;
    targets_ = targets;
  }

  torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) override {
    const torch::NoGradGuard no_grad;
    const auto d_f =
        row_softmax_backward(softmax_, f_, weight_, 0, targets_, d_log_prob, d_log_z, gradients[0]);
    if (gradients.size() > 1)
      row_bias_backward(softmax_, 0, targets_, d_log_prob, d_log_z, gradients[1]);
    softmax_.exp.reset();
    return d_f.to(f_.scalar_type());
  }

 private:
  torch::Tensor weight_, f_, targets_;
  RowSoftmax softmax_;
};

/// Returns the capped scores f W^T (R, V) in the accumulation type.
torch::Tensor scores_of(const torch::Tensor& f, const torch::Tensor& weight, double cap) {
  const auto plain = f.to(weight.scalar_type()).mm(weight.t()).to(accumulation_type(weight));
  return plain.div_(cap).tanh_().mul_(cap);
}

class CappedBlock : public HeadBlock {
 public:
  CappedBlock(const torch::Tensor& weight, double cap, const torch::Tensor& f,
      const torch::Tensor& targets, bool gradient)
      : weight_(weight), cap_(cap) {
    auto scores = scores_of(f, weight, cap);
    log_z = scores.logsumexp(1);
    log_prob = scores.gather(1, targets.unsqueeze(1)).squeeze(1) - log_z;
    if (!gradient) return;
    scores_ = std::move(scores), f_ = f, targets_ = targets.unsqueeze(1);
  }

  torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) override {
    const torch::NoGradGuard no_grad;
    // d/d score_j = d_log_prob [j = target] + (d_log_z - d_log_prob) p_j, followed by the gradient
    // of the cap.
    auto d = (scores_ - log_z.unsqueeze(1)).exp_().mul_((d_log_z - d_log_prob).unsqueeze(1));
    d.scatter_add_(1, targets_, d_log_prob.unsqueeze(1).to(d.scalar_type()));
    d.mul_(1 - (scores_ / cap_).square_());
    scores_.reset();
    const auto narrow = d.to(weight_.scalar_type());
    gradients[0].add_(narrow.t().mm(f_.to(weight_.scalar_type())));
    return narrow.mm(weight_).to(f_.scalar_type());
  }

 private:
  torch::Tensor weight_;
  double cap_;
  torch::Tensor scores_, f_, targets_;
};

}  // namespace

PlainHead::PlainHead(std::int64_t vocabulary, std::int64_t d_model, bool bias)
    : weight_(register_parameter("weight", blank({vocabulary, d_model}))) {
  add_bias(bias);
}

PlainHead::PlainHead(const std::shared_ptr<Embedding>& tied, bool bias)
    : weight_(tied->tables.at(0)) {
  add_bias(bias);
}

void PlainHead::add_bias(bool bias) {
  if (bias) bias_ = register_parameter("bias", blank({weight_.size(0)}));
}

std::vector<torch::Tensor> PlainHead::weights() {
  if (!bias_.defined()) return {weight_};
  return {weight_, bias_};
}

std::unique_ptr<HeadBlock> PlainHead::block(
    const torch::Tensor& f, const Targets& targets, bool gradient) {
  const torch::NoGradGuard no_grad;
  return std::make_unique<PlainBlock>(weight_, bias_, f, targets.there, gradient);
}

torch::Tensor PlainHead::log_probs(const torch::Tensor& f, torch::Tensor* log_z) {
  const torch::NoGradGuard no_grad;
  const auto scores = scores_of(f, weight_, bias_);
  const auto normaliser = scores.logsumexp(1);
  if (log_z != nullptr) *log_z = normaliser;
  return scores - normaliser.unsqueeze(1);
}

std::int64_t PlainHead::bytes_per_row() const {
  return weight_.size(0) * static_cast<std::int64_t>(elementSize(accumulation_type(weight_)));
}

CappedHead::CappedHead(std::int64_t vocabulary, std::int64_t d_model, double cap)
    : PlainHead(vocabulary, d_model), cap_(cap) {}

CappedHead::CappedHead(const std::shared_ptr<Embedding>& tied, double cap)
    : PlainHead(tied), cap_(cap) {}

std::unique_ptr<HeadBlock> CappedHead::block(
    const torch::Tensor& f, const Targets& targets, bool gradient) {
  const torch::NoGradGuard no_grad;
  return std::make_unique<CappedBlock>(weights()[0], cap_, f, targets.there, gradient);
}

torch::Tensor CappedHead::log_probs(const torch::Tensor& f, torch::Tensor* log_z) {
  const torch::NoGradGuard no_grad;
  const auto scores = scores_of(f, weights()[0], cap_);
  const auto normaliser = scores.logsumexp(1);
  if (log_z != nullptr) *log_z = normaliser;
  return scores - normaliser.unsqueeze(1);
}

std::int64_t CappedHead::bytes_per_row() const { return 3 * PlainHead::bytes_per_row(); }

}  // namespace nn
