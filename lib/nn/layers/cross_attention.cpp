#include "nn/layers/cross_attention.h"

namespace nn {

CrossAttention::CrossAttention(std::int64_t d_model, std::int64_t heads, bool bias, double dropout)
    : heads_(heads), dropout_(dropout) {
  c_q_ = register_module("c_q", std::make_shared<Linear>(d_model, d_model, bias));
  c_kv_ = register_module("c_kv", std::make_shared<Linear>(d_model, 2 * d_model, bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_model, d_model, bias));
}

SourceEntries CrossAttention::entries(const torch::Tensor& source) const {
  const auto rows = source.size(0), places = source.size(1), d = source.size(2);
  const auto split = c_kv_->forward(source)
                         .view({rows, places, 2, heads_, d / heads_})
                         .permute({2, 0, 3, 1, 4})
                         .contiguous();
  return {split[0], split[1]};
}

torch::Tensor CrossAttention::forward(const torch::Tensor& x, const SourceEntries& entries,
                                      const Visibility& visibility, const torch::Tensor& present) {
  const auto rows = x.size(0), steps = x.size(1), d = x.size(2);
  const auto q = c_q_->forward(x).view({rows, steps, heads_, d / heads_}).transpose(1, 2);
  const auto out =
      attend(q, entries.keys, entries.values, visibility, is_training() ? dropout_ : 0.0);
  return c_proj_->forward(out.transpose(1, 2).reshape({rows, steps, d})) * present;
}

}  // namespace nn
