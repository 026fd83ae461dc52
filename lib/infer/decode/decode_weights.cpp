#include "infer/decode/decode_weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "infer/decode/packed_weights.h"

namespace infer {

Affine::Range Affine::range(TeamShare share) const {
  const auto panels = matrix.panels();
  return {PackedMatrix::kPanel * share.begin(panels),
          std::min(matrix.out(), PackedMatrix::kPanel * share.end(panels))};
}

void Affine::multiply(const float* x, std::int64_t rows, std::int64_t ldx, TeamShare share,
                      float* y, std::int64_t ldy) const {
  const auto panels = matrix.panels();
  if (halves) {
    matrix.multiply_halves(x, rows, ldx, share.begin(panels), share.end(panels), y, ldy);
  } else {
    matrix.multiply(x, rows, ldx, share.begin(panels), share.end(panels), y, ldy);
  }
  if (bias == nullptr) return;
  const auto [first, last] = range(share);
  for (std::int64_t i = 0; i < rows; ++i) add(bias + first, last - first, y + i * ldy + first);
}

DecodeWeights::DecodeWeights(const torch::nn::Module& module, Precision precision)
    : precision_(precision) {
  for (const auto& item : module.named_parameters())
    tensors_.emplace(item.key(), item.value().detach());
}

torch::Tensor DecodeWeights::tensor(const std::string& name, torch::IntArrayRef sizes) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || found->second.sizes() != sizes)
    core::fail(
        core::Code::bug, "weight {} has shape [{}], expected [{}]", name,
        fmt::join(found == tensors_.end() ? torch::IntArrayRef{} : found->second.sizes(), ", "),
        fmt::join(sizes, ", "));
  return found->second;
}

const float* DecodeWeights::vector(const std::string& name, std::int64_t size) const {
  return tensor(name, {size}).const_data_ptr<float>();
}

Affine DecodeWeights::affine(const std::string& name, std::int64_t out, std::int64_t in,
                             std::int64_t first, std::int64_t rows) const {
  const auto bias = name + ".bias";
  return {pack(tensor(name + ".weight", {out, in}), first, rows, precision_),
          has(bias) ? vector(bias, out) + first : nullptr};
}

LayerNormed DecodeWeights::norm(const std::string& name, std::int64_t width, double epsilon) const {
  const auto bias = name + ".bias";
  return {vector(name + ".weight", width), has(bias) ? vector(bias, width) : nullptr, width,
          static_cast<float>(epsilon), false};
}

PackedMatrix DecodeWeights::packed(const torch::Tensor& matrix) {
  const auto& kept = kept_.emplace_back(matrix.detach().to(torch::kFloat32).contiguous());
  return pack(kept, 0, kept.size(0), precision_);
}

const float* DecodeWeights::kept(const torch::Tensor& values) {
  return kept_.emplace_back(values.detach().to(torch::kFloat32).contiguous())
      .const_data_ptr<float>();
}

}  // namespace infer
