#pragma once
// Optimisers: they update weights from gradients, in one pass per tensor.
// Approximates a matrix's nearest orthogonal one without a decomposition.

#include "nn/base/torch.h"
#include "train/train_options.h"

namespace train {

using NamedWeights = std::vector<std::pair<std::string, torch::Tensor>>;

/// What a run trains instead of all weights of a model. Not thread safe.
class TrainedPart {
 public:
  virtual ~TrainedPart() = default;
  /// Moves what is no weight of the model; the caller moves the model.
  virtual void to(torch::Device device) = 0;
  virtual NamedWeights weights() const = 0;
  /// Returns whether weights() are the model's own.
  virtual bool in_model() const = 0;
  /// Surrounds the forward pass of a micro-batch.
  virtual void forward(const std::function<void()>& pass) { pass(); }
  /// Makes the gradients of weights() from those that the micro-batch's backward pass left.
  virtual void take_gradients() = 0;
  /// Follows each update.
  virtual void apply() {}
};

/// Update rules. g = gradient * scale. A weight with decay is first multiplied by (1 - lr *
/// weight_decay).
///   adamw  m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2
///          w -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon)
///          Loshchilov & Hutter 2019; torch.optim.AdamW
///   adam   the m and v of adamw; epsilon is added to sqrt(v) without bias correction:
///          w -= lr (sqrt(1-b2^t) / (1-b1^t)) m / (sqrt(v) + epsilon)
///          fairseq's "adam", whose weight decay is decoupled too
///   radam  adam's step times sqrt((r-4) (r-2) R / ((R-4) r)), where
///          R = 2 / (1-b2) - 1,  r = R - 2 t b2^t / (1-b2^t);
///          while r is below 5:  w -= lr m / (1-b1^t)
///          Liu et al. 2020, algorithm 2
/// Without bias_correction, adamw and adam replace b1^t and b2^t by 0, as MLX's AdamW does by
/// default.
///   nag    c = lr / (the lr of the previous step)
///          w += momentum^2 c u - (1 + momentum) lr g
///          u = momentum c u - lr g
///          Nesterov momentum in the form of Bengio et al. 2013; c corrects the velocity u when the
///          rate changes: fairseq's "nag"
///   muon   for matrices that nn::is_hidden_matrix() selects (Jordan et al. 2024), in the form of
///          Liu et al. 2025, "Muon is scalable for LLM training", whose steps are as long as
///          AdamW's:
///          M = momentum M + g
///          w -= lr 0.2 sqrt(max(rows, columns)) orthogonalised(g + momentum M)
///          all other weights use adamw
/// A weight without a gradient has gradient 0. Weights are float32 and are updated in place. Not
/// thread safe.
///
/// A row of a memory layer's table (is_memory_table()) whose gradient is all zeros in an update is
/// left out of that update: its weights neither move nor decay and its moments neither fade nor
/// grow, as by torch.optim.SparseAdam; t counts all updates, and nag's previous rate is that
/// of the previous update. An update takes time proportional to the rows it read.
class Optimiser {
 public:
  Optimiser(const OptimiserOptions& options, NamedWeights weights);
  virtual ~Optimiser() = default;

  /// Makes one step. `scale` multiplies the gradients. It is a scalar tensor on their device, so
  /// that clipping needs no synchronisation. Gradients are not changed.
  virtual void step(double lr, const torch::Tensor& scale) = 0;

  /// Moments by name "KIND.WEIGHT". restore() copies what `saved` returns for a name, one moment
  /// after the other. It throws Error{bad_data} if a moment has another shape.
  const std::map<std::string, torch::Tensor>& tensors() const { return tensors_; }
  void restore(const std::function<torch::Tensor(const std::string& name)>& saved);
  /// Returns the names of a weight's moments. Each has the weight's shape.
  std::vector<std::string> moment_names(std::size_t weight) const;
  /// Scalars of the optimiser's state. They are float64, so that JSON stores them exactly.
  virtual std::vector<double> numbers() const = 0;
  virtual void set_numbers(const std::vector<double>& numbers) = 0;

  const NamedWeights& weights() const { return weights_; }

 protected:
  torch::Tensor moment(const std::string& kind, std::size_t weight);
  double decay_of(std::size_t weight) const;
  OptimiserOptions options_;
  NamedWeights weights_;
  std::map<std::string, torch::Tensor> tensors_;
};

/// Creates an optimiser. `all`: the model's weights, if `weights` are some of them or parts. Throws
/// Error{usage} for muon if no weight is a hidden matrix.
std::unique_ptr<Optimiser> make_optimiser(
    const OptimiserOptions& options, NamedWeights weights, const NamedWeights& all = {});

/// Returns the sum of a gradient's squares: on the CPU one sum for each kNormBlock numbers, on a
/// device one.
inline constexpr std::int64_t kNormBlock = 1 << 15;
std::vector<double> square_sums(const torch::Tensor& gradient);

/// Euclidean norm of all gradients together, sparse ones settled (nn/ops/gathered_sum.h): a float64
/// scalar on their device; the same for any number of threads.
torch::Tensor gradient_norm(const NamedWeights& weights);

/// Returns whether a weight is the table of a memory layer, (rows, d), of which a step reads few
/// rows: ValuePool's "values" or NgramMemory's "tables". Its gradient is sparse on the CPU
/// (nn/ops/gathered_sum.h).
bool is_memory_table(const std::string& name);

/// Numbers that an optimiser keeps for these weights, in all their moments.
std::int64_t moment_numbers(const OptimiserOptions& options, const NamedWeights& weights);

/// Returns U S' V^T for matrix (rows, columns) = U S V^T, floating, in its shape and type: the
/// singular values S' are between about 0.7 and 1.2 where S exceeds about 1e-3 of the norm. Uses
/// five steps of the quintic Newton-Schulz iteration (Jordan et al. 2024, "Muon: an optimizer for
/// hidden layers in neural networks"):
///   X = matrix / (|matrix| + 1e-7), Frobenius' norm, transposed where rows > columns
///   A = X X^T;  X = a X + (b A + c A^2) X,  (a, b, c) = (3.4445, -4.7750, 2.0315)
/// A zero matrix remains zero. Does not synchronise with the device.
torch::Tensor orthogonalised(const torch::Tensor& matrix);

}  // namespace train
