#include "nn/layers/real_first.h"

#include "nn/base/upload.h"

namespace nn {
namespace {

// Permutes the steps of each row of x (B, T, ...) by `order` (B, T).
torch::Tensor permuted(const torch::Tensor& x, const torch::Tensor& order) {
  auto at = upload(order, x.device());
  while (at.dim() < x.dim()) at = at.unsqueeze(-1);
  return x.gather(1, at.expand_as(x));
}

}  // namespace

RealFirst::RealFirst(const Batch& batch) {
  const auto real = batch.place.run >= 0;
  count_ = real.sum(1);
  if (real.all().item<bool>()) return;
  order_ = real.logical_not().to(torch::kInt64).argsort(/*stable=*/true, 1);
  inverse_ = order_.argsort(/*stable=*/true, 1);
}

torch::Tensor RealFirst::pack(const torch::Tensor& x) const {
  return dense() ? x : permuted(x, order_);
}

torch::Tensor RealFirst::packed_ids(const Batch& batch) const {
  const auto& ids = batch.inputs;
  if (dense()) return ids;
  return pack(ids.masked_fill(upload(batch.place.run < 0, ids.device()), 0));
}

torch::Tensor RealFirst::unpack(const torch::Tensor& x) const {
  return dense() ? x : permuted(x, inverse_);
}

}  // namespace nn
