#include "infer/decode/decode_weights.h"

#include <fmt/ranges.h>

#include "infer/decode/packed_model.h"

namespace infer {
namespace {

// Checks the sizes of a required weight.
void expect_sizes(
    const torch::Tensor& weight, torch::IntArrayRef sizes, const std::string& name = "of a layer") {
  if (!weight.defined() || weight.sizes() != sizes)
    core::bug("weight {} has shape [{}], expected [{}]", name,
        fmt::join(weight.defined() ? weight.sizes() : torch::IntArrayRef{}, ", "),
        fmt::join(sizes, ", "));
}

}  // namespace

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

PackedMatrix pack(
    const torch::Tensor& weight, std::int64_t first, std::int64_t rows, Precision precision) {
  const auto in = weight.size(1);
  if (weight.scalar_type() == torch::kBFloat16) {
    const auto* const halves =
        reinterpret_cast<const std::uint16_t*>(weight.const_data_ptr<at::BFloat16>());
    return {halves + first * in, rows, in, precision};
  }
  return {weight.const_data_ptr<float>() + first * in, rows, in, precision};
}

DecodeWeights::DecodeWeights(
    const torch::nn::Module& module, Precision precision, const PackedModel* packed, bool halves)
    : precision_(precision), packed_(packed), halves_(halves) {
  for (const auto& item : module.named_parameters())
    tensors_.emplace(item.key(), item.value().detach());
}

// Returns an undefined tensor if there is no such weight.
torch::Tensor DecodeWeights::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? torch::Tensor() : found->second;
}

torch::Tensor DecodeWeights::tensor(const std::string& name, torch::IntArrayRef sizes) const {
  const auto weight = find(name);
  expect_sizes(weight, sizes, name);
  return weight;
}

Affine DecodeWeights::affine(const WeightAndBias& map, std::int64_t out, std::int64_t in,
    std::int64_t first, std::int64_t rows) {
  expect_sizes(map.weight, {out, in});
  if (rows < 0) rows = out;
  const PackedMatrix* const taken = packed_ == nullptr ? nullptr : packed_->find(map.weight);
  const float* const bias = bias_of(map, out);
  return {taken != nullptr ? taken->rows(first, rows) : pack(map.weight, first, rows, precision_),
      bias == nullptr ? nullptr : bias + first, halves_};
}

LayerNormed DecodeWeights::norm(
    const WeightAndBias& factors, std::int64_t width, double epsilon, bool rms) {
  expect_sizes(factors.weight, {width});
  return {kept(factors.weight), bias_of(factors, width), width, static_cast<float>(epsilon), rms};
}

const float* DecodeWeights::bias_of(const WeightAndBias& of, std::int64_t size) {
  if (!of.bias.defined()) return nullptr;
  expect_sizes(of.bias, {size});
  return kept(of.bias);
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
