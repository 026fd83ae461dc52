#include "infer/decode/packed_model.h"

#include "infer/decode/decode_head.h"
#include "nn/arch/decoder_stack.h"
#include "nn/base/arch_facts.h"
#include "nn/base/pages.h"
#include "nn/layers/embedding.h"

namespace infer {

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

}  // namespace infer
