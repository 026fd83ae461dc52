#pragma once
// Memory Mosaics v2 (Zhang and Bottou 2025, "Memory Mosaics at scale", arXiv 2507.03285): three
// levels of memory, without queries and positions.
// Contextual memories of Memory Mosaics v2 (Zhang and Bottou 2025, "Memory Mosaics at scale", arXiv
// 2507.03285, sections 3.1 to 3.3 and table 6).

#include "nn/arch/mosaic_units.h"
#include "nn/layers/block.h"

namespace nn {

/// Range of pairs that queries see in a memory. Pair i is the key of token i with the value that
/// token i + 1 completes; token t sees pairs up to t - 1.
struct PairReach {
  std::int64_t nearest = 1;   ///< token t sees pairs up to t - nearest
  std::int64_t farthest = 0;  ///< and from t - farthest on; 0: from the first
};

/// The visible pairs in one call. The first `skipped` tokens see none; the others read slots
/// [begin, begin + slots) of the cache, in which `visibility` hides pairs out of reach.
struct PairVisibility {
  std::int64_t skipped = 0, begin = 0, slots = 0;
  /// Not 0: query i sees `band` slots up to i; `visibility` is unused.
  std::int64_t band = 0;
  Visibility visibility;
  /// (B or 1, T - skipped, 1): number of pairs visible to each token, at least float32.
  torch::Tensor counts;
  torch::Tensor sees;  ///< shape of counts: 0 for tokens without a visible pair, else 1; undefined:
                       ///< all see one
};

/// Returns the visible pairs for a call of `tokens` tokens; `opening` as in MosaicCall. `queries`
/// gives the device and the type of masks.
PairVisibility make_pair_visibility(const KvCache& cache, const PairReach& reach,
    std::int64_t tokens, bool opening, const torch::TensorOptions& queries);

/// Returns the visible pairs in a ring; see call_in_ring().
PairVisibility make_pair_visibility(
    const KvRing& ring, const PairReach& reach, const torch::TensorOptions& queries);

/// Scalars of a memory for each head; see GatedMemory.
struct MemoryNumbers {
  torch::Tensor beta_0, beta_1, alpha, value_scale, mix;  ///< (heads)
};
/// Transforms stored scalars to the used values.
MemoryNumbers used_numbers(const MemoryNumbers& stored);

/// Computes y_t = sum over the n visible pairs of softmax_s(beta k_t . k_s) v_s for each head, 0
/// without visible pairs; then c_proj: x (B, T, d) -> (B, T, d).
///   keys    k = gated_keys(x W_phi, x W_g, -|x W_lambda|), which serve as queries (eq. 8)
///   values  v_s = alpha_psi Norm(gamma u_s + (1 - gamma) u_{s+1}), u = x W_psi (eq. 9)
///   beta = beta_1 n^alpha + beta_0 (eq. 6)
/// Scalars of a head are stored as in table 6: beta_0 = e^min(b, 10), beta_1 likewise, alpha =
/// min(|a|, 1), alpha_psi = e^min(|p|, 15), gamma unchanged; initial values 1.5, 1.5, 1/3, 0 and
/// uniform in [0, 1]. We read these scalars, W_g and W_lambda as separate for each head; the paper
/// writes them for one memory.
///
/// `maps` contains W_phi (first d rows) and W_psi, `gates` W_g (first `heads` rows) and W_lambda,
/// c_proj this memory's half of W_o, which reads the outputs of all memories side by side. State:
/// NAME.sums (B, d), NAME.levels (B, heads): see GatedSums; NAME.value (B, d): an incomplete value;
/// NAME.k, NAME.v.
class GatedMemory : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit GatedMemory(const ShapeOptions& shape);
  torch::Tensor forward(const torch::Tensor& x, const MosaicCall& call,
      const PairVisibility& visibility, const std::string& name);
  void first_values() override;

 private:
  /// Reads the pairs: keys (B, T, d), the pairs' keys and values (B, n, d) -> (B, T, d).
  torch::Tensor read(const torch::Tensor& keys, const torch::Tensor& pair_keys,
      const torch::Tensor& values, const MosaicCall& call, const PairVisibility& visibility,
      const std::string& name);
  /// Returns (B or 1, heads, T, 1).
  torch::Tensor beta(const torch::Tensor& counts) const;

  std::int64_t heads_;
  double dropout_;
  std::shared_ptr<Linear> maps_, gates_, c_proj_;
  MemoryNumbers stored_;
};

/// Layers compute x += short_term(ln_1(x)) + long_term(ln_1(x)); x += mlp(ln_2(x)), followed by
/// ln_f.
///
/// short_term  the newest h pairs: token t sees pairs t - h to t - 1, as in figure 11 (eq. 10 stops
///             at t - h + 1); h is --short-term
/// long_term   older pairs: token t sees pairs up to t - m. m is --long-term-delay; in training
///             each call draws it uniformly from there to --long-term-delay-most, with torch's
///             generator
/// mlp         the persistent memory, c_proj(silu(W_1 x) * W_3 x) with W_1 and W_3 in c_fc; in the
///             layers of --memory-layer, a ProductKeyMemory
///
/// Both memories have the model's width and separate weights, consistent with the paper's parameter
/// counts of 9.9 billion and, without long-term memory, 8.3 billion. The sum equals the paper's
/// projection of both outputs side by side. The paper's figures call the norms "normalize"; here
/// they are RMSNorm, as in the transformers of its comparison. The memory key is the input of mlp,
/// or the output of ln_f: --memory-key. State: "started" (B) bool on the CPU, the cache of pairs,
/// and the memories' state. The State grows with each token until it forgets.
class Mosaic2 : public CarryingArchitecture {
 public:
  static constexpr double kNormEpsilon = 1e-5;

  /// Throws Error{bad_config} that names the option.
  Mosaic2(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  Carry carry() const override { return Carry::forget; }
  /// Keeps keep - 1 pairs and the newest token's, which the next token completes. Averages of keys
  /// are unchanged; n in the bandwidth counts the remaining pairs.
  void forget(State& state, std::int64_t keep) override;

 private:
  struct Layer {
    std::shared_ptr<LayerNorm> ln_1, ln_2;
    std::shared_ptr<GatedMemory> short_term, long_term;
    std::shared_ptr<TokenNetwork> mlp;
  };
  Hidden run(const torch::Tensor& ids, const MosaicCall& call, const PairVisibility& near,
      const PairVisibility& far);
  std::int64_t delay() const;

  Mosaic2Options options_;
  std::vector<Layer> layers_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
