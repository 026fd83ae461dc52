#include "nn/layers/embedding.h"

#include "nn/base/cuda.h"
#include "nn/layers/layers.h"

namespace nn {
std::int64_t Bands::width(std::int64_t band) const {
  const auto first = static_cast<double>(d_embedding > 0 ? d_embedding : d_model);
  const auto width = std::floor(first / std::pow(factor, band));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(width));
}

Embedding::Embedding(Bands bands, double scale) : bands_(std::move(bands)), scale_(scale) {
  if (bands_.count() == 1) {
    tables.push_back(register_parameter("weight", blank({bands_.vocabulary, bands_.d_model})));
    return;
  }
  for (std::int64_t i = 0; i < bands_.count(); ++i) {
    const auto size = bands_.end(i) - bands_.begin(i), width = bands_.width(i);
    const auto number = std::to_string(i);
    tables.push_back(register_parameter("table_" + number, blank({size, width})));
    projections.push_back(
        register_parameter("projection_" + number, blank({bands_.d_model, width})));
  }
}

torch::Tensor Embedding::scaled(const torch::Tensor& vectors) const {
  return scale_ == 1 ? vectors : vectors * scale_;
}

torch::Tensor Embedding::forward_wide(const torch::Tensor& ids) {
  return scaled(look_up(ids).to(torch::kFloat32));
}

torch::Tensor Embedding::look_up(const torch::Tensor& ids) {
  torch::Tensor out;
  if (projections.empty()) {
    out = torch::embedding(tables[0], ids);
  } else {
    const auto flat = ids.flatten();
    out = torch::zeros({flat.size(0), bands_.d_model}, tables[0].options().requires_grad(false));
    for (std::int64_t i = 0; i < bands_.count(); ++i) {
      const auto inside = (flat >= bands_.begin(i)).logical_and_(flat < bands_.end(i));
      if (!in_host_memory(flat)) {
        // Which rows those are only the device knows: all, then a choice. The others look up any
        // word, each its own: the backward pass adds many gradients of one word in sequence.
        const auto any = torch::arange(flat.size(0), flat.options());
        const auto words = torch::where(
            inside, flat - bands_.begin(i), any.remainder(bands_.end(i) - bands_.begin(i)));
        const auto vectors = torch::linear(torch::embedding(tables[i], words), projections[i]);
        out = torch::where(inside.unsqueeze(1), vectors, out);
        continue;
      }
      const auto rows = inside.nonzero().flatten();
      if (rows.size(0) == 0) continue;
      const auto vectors =
          torch::embedding(tables[i], flat.index_select(0, rows) - bands_.begin(i));
      out = out.index_copy(0, rows, torch::linear(vectors, projections[i]));
    }
    auto shape = ids.sizes().vec();
    shape.push_back(bands_.d_model);
    out = out.view(shape);
  }
  return out;
}

Bands make_bands(const ModelOptions& options, std::int64_t vocabulary) {
  const auto& words = options.vocabulary;
  std::int64_t last = 0;
  for (const auto cutoff : words.cutoffs) {
    if (cutoff <= last) core::bad_config("cutoffs: must increase, but {} follows {}", cutoff, last);
    last = cutoff;
  }
  if (last >= vocabulary) {
    core::bad_config(
        "cutoffs: {} is not below the vocabulary size, {}; leave it out", last, vocabulary);
  }
  if (words.d_embedding > 0 && words.cutoffs.empty())
    core::bad_config("d-embedding: requires cutoffs");
  return {vocabulary, options.shape.d_model, words.cutoffs, words.factor, words.d_embedding};
}

std::shared_ptr<Embedding> make_embedding(const ModelOptions& options, std::int64_t vocabulary) {
  const bool scaled = options.vocabulary.scale_embedding;
  return std::make_shared<Embedding>(make_bands(options, vocabulary),
      scaled ? std::sqrt(static_cast<double>(options.shape.d_model)) : 1.0);
}

}  // namespace nn
