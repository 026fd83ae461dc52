#include "nn/heads/plain_head.h"

#include "nn/layers/layers.h"
#include "nn/ops/softmax_rows.h"

namespace nn {
namespace {

class PlainBlock : public HeadBlock {
 public:
  PlainBlock(const torch::Tensor& weight, const torch::Tensor& f, const torch::Tensor& targets,
             bool gradient)
      : weight_(weight) {
    const auto narrow = f.to(weight.scalar_type());
    softmax_ = row_softmax_(narrow.mm(weight.t()).to(accumulation_type(weight)), targets);
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
    softmax_.exp.reset();
    return d_f.to(f_.scalar_type());
  }

 private:
  torch::Tensor weight_, f_, targets_;
  RowSoftmax softmax_;
};

}  // namespace

PlainHead::PlainHead(std::int64_t vocabulary, std::int64_t d_model)
    : weight_(register_parameter("weight", blank({vocabulary, d_model}))) {}

PlainHead::PlainHead(const std::shared_ptr<Embedding>& tied) : weight_(tied->tables.at(0)) {}

std::unique_ptr<HeadBlock> PlainHead::block(const torch::Tensor& f, const Targets& targets,
                                            bool gradient) {
  const torch::NoGradGuard no_grad;
  return std::make_unique<PlainBlock>(weight_, f, targets.there, gradient);
}

torch::Tensor PlainHead::log_probs(const torch::Tensor& f, torch::Tensor* log_z) {
  const torch::NoGradGuard no_grad;
  const auto scores = f.to(weight_.scalar_type()).mm(weight_.t()).to(accumulation_type(weight_));
  const auto normaliser = scores.logsumexp(1);
  if (log_z != nullptr) *log_z = normaliser;
  return scores - normaliser.unsqueeze(1);
}

std::int64_t PlainHead::bytes_per_row() const {
  return weight_.size(0) * static_cast<std::int64_t>(elementSize(accumulation_type(weight_)));
}

}  // namespace nn
