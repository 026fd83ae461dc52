#include "infer/decode/packed_model.h"

#include <omp.h>

#include "infer/decode/decode_weights.h"
#include "nn/arch/transformer.h"
#include "nn/base/pages.h"

namespace infer {
namespace {

// A block from the log-probabilities of whole rows.
class WholeRows : public nn::HeadBlock {
 public:
  WholeRows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets) {
    const auto rows = head.log_probs(f, &log_z);
    log_prob = rows.gather(1, targets.there.unsqueeze(1)).squeeze(1);
  }
  torch::Tensor backward(
      const torch::Tensor&, const torch::Tensor&, std::vector<torch::Tensor>&) override {
    core::bug("a head without its weights has no gradient");
  }
};

/// Computes the log-probabilities of `head` (float32 or bfloat16, on the CPU), which must outlive
/// it, with packed weights. block() is the head's own; without its numbers it has no backward().
class PackedHead : public nn::Head {
 public:
  /// `cap`: see nn::CappedHead; 0: none. `packed`: see decoding_head().
  PackedHead(
      std::shared_ptr<nn::Head> head, double cap, Precision precision, const PackedModel* packed)
      : head_(std::move(head)), cap_(static_cast<float>(cap)) {
    const auto weight = head_->weights().at(0);
    const PackedMatrix* const found = packed == nullptr ? nullptr : packed->find(weight);
    taken_ = found != nullptr;
    words_ = taken_ ? *found : pack(weight, 0, weight.size(0), precision);
  }

  std::int64_t vocabulary() const override { return head_->vocabulary(); }
  std::vector<torch::Tensor> weights() override { return head_->weights(); }
  std::unique_ptr<nn::HeadBlock> block(
      const torch::Tensor& f, const nn::Targets& targets, bool gradient) override {
    if (!taken_) return head_->block(f, targets, gradient);
    return std::make_unique<WholeRows>(*this, f, targets);
  }
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override {
    const torch::NoGradGuard no_gradient;
    const auto rows = f.size(0), stride = words_.padded_in(), words = words_.out();
    const auto x = torch::constant_pad_nd(f, {0, stride - f.size(1)}).contiguous();
    const auto out = torch::empty({rows, words});
    const auto normaliser = torch::empty({rows});
    const float* const from = x.const_data_ptr<float>();
    float* const to = out.data_ptr<float>();
    float* const z = normaliser.data_ptr<float>();
#pragma omp parallel num_threads(at::get_num_threads())
    {
      const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      const auto panels = words_.panels();
      words_.multiply(from, rows, stride, panels * thread / threads,
          panels * (thread + 1) / threads, to, words);
#pragma omp barrier
      for (std::int64_t r = thread; r < rows; r += threads) {
        if (cap_ > 0) soft_cap(to + r * words, words, cap_);
        z[r] = log_softmax(to + r * words, words);
      }
    }
    if (log_z != nullptr) *log_z = normaliser;
    return out;
  }
  std::int64_t bytes_per_row() const override { return head_->bytes_per_row(); }

 private:
  std::shared_ptr<nn::Head> head_;
  float cap_;
  bool taken_ = false;  // head_ has no numbers
  PackedMatrix words_;
};

}  // namespace

bool has_transformer_loop(const nn::Model& model) {
  return dynamic_cast<const nn::DecoderStack*>(model.architecture.get()) != nullptr &&
         model.options.plain_layers();
}

bool PackedModel::takes(const nn::Model& model, const torch::Tensor& weight) {
  if (precision_ == Precision::float32 || weight.dim() != 2 || !weight.is_cpu() ||
      !has_transformer_loop(model) || nn::arch_facts(model.options.arch).reads_source)
    return false;
  const auto embedding = model.architecture->embedding();
  const bool of_embedding = weight.is_same(embedding->tables.at(0));
  const bool of_head = weight.is_same(model.head->weights().at(0));
  bool packs = (of_embedding || of_head) && (!of_embedding || embedding->projections.empty()) &&
               (!of_head || packs_head(model));
  if (!of_embedding && !of_head) {
    const auto& stack = dynamic_cast<const nn::DecoderStack&>(*model.architecture).stack();
    for (const auto& block : stack.blocks()) {
      const auto w = block->weights();
      for (const auto* of : {&w.qkv, &w.project, &w.expand, &w.reduce})
        packs = packs || weight.is_same(*of);
    }
  }
  if (packs)
    weights_[weight.unsafeGetTensorImpl()] = {
        weight, PackedMatrix(weight.size(0), weight.size(1), precision_)};
  return packs;
}

void PackedModel::take(const torch::Tensor& weight, std::int64_t first, const torch::Tensor& rows) {
  weights_.at(weight.unsafeGetTensorImpl())
      .matrix.set_rows(first, rows.size(0), rows.const_data_ptr<float>());
}

void PackedModel::leaves(std::span<const torch::Tensor> weights) {
  nn::move_to_huge_pages(weights);
}

const PackedMatrix* PackedModel::find(const torch::Tensor& weight) const {
  const auto found = weights_.find(weight.unsafeGetTensorImpl());
  return found == weights_.end() ? nullptr : &found->second.matrix;
}

bool packs_head(const nn::Model& model) {
  const auto& words = model.options.vocabulary;
  return words.cutoffs.empty() && !words.head_bias;
}

std::shared_ptr<nn::Head> decoding_head(
    const nn::Model& model, Precision precision, const PackedModel* packed) {
  if (!packs_head(model)) return model.head;
  const double cap = model.options.vocabulary.logit_softcap;
  return std::make_shared<PackedHead>(model.head, cap, precision, packed);
}

}  // namespace infer
