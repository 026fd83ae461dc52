#pragma once
// Token embeddings: plain, or adaptive (Baevski & Auli 2019, section 3).

#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace nn {

/// A vocabulary divided into bands by frequency: band 0 has ids [0, cutoffs[0]), the last ends at
/// the vocabulary's size. Band i has vectors of width d_embedding / factor^i (at least 1) and a
/// projection to d_model. Plain: one band without projection.
struct Bands {
  std::int64_t vocabulary = 0;
  std::int64_t d_model = 0;
  /// Strictly increasing, without the vocabulary's size; empty: plain.
  std::vector<std::int64_t> cutoffs;
  double factor = 4;
  std::int64_t d_embedding = 0;  ///< 0: d_model

  std::int64_t count() const { return static_cast<std::int64_t>(cutoffs.size()) + 1; }
  std::int64_t begin(std::int64_t band) const { return band == 0 ? 0 : cutoffs[band - 1]; }
  std::int64_t end(std::int64_t band) const {
    return band < count() - 1 ? cutoffs[band] : vocabulary;
  }
  std::int64_t width(std::int64_t band) const;
  /// Returns whether the width of band 0 differs from d_model.
  bool narrow() const { return width(0) != d_model; }
};

/// Maps ids (…) int64 in [0, vocabulary) to vectors (…, d_model), times `scale`.
class Embedding : public torch::nn::Module {
 public:
  explicit Embedding(Bands bands, double scale = 1);
  torch::Tensor forward(const torch::Tensor& ids) { return scaled(look_up(ids)); }
  /// Returns the vectors as float32; narrower types are converted before scaling.
  torch::Tensor forward_wide(const torch::Tensor& ids);
  /// Returns vectors times `scale`.
  torch::Tensor scaled(const torch::Tensor& vectors) const;

  const Bands& bands() const { return bands_; }
  std::vector<torch::Tensor> tables;       ///< band i: (end - begin, width)
  std::vector<torch::Tensor> projections;  ///< band i: (d_model, width); empty when plain

 private:
  torch::Tensor look_up(const torch::Tensor& ids);
  Bands bands_;
  double scale_;
};

/// make_bands() returns the bands of the options, make_embedding() the input embedding. Both throw
/// Error{bad_config} that names the option.
Bands make_bands(const ModelOptions& options, std::int64_t vocabulary);
std::shared_ptr<Embedding> make_embedding(const ModelOptions& options, std::int64_t vocabulary);

}  // namespace nn
