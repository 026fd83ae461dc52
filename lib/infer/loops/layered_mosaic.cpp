// Decoding of the memory units of Memory Mosaics (nn/arch/mosaic_units.h).

#include "infer/loops/layered_models.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/mosaic.h"

namespace infer {
namespace {

/// Scalars of a unit for each head, after transformation.
struct UnitFactors {
  const float *decay, *key_scale, *value_scale;
};

UnitFactors factors_of(DecodeWeights& weights, const std::string& name, std::int64_t heads) {
  const nn::UnitScalars stored{weights.tensor(name + ".decay", {heads}),
      weights.tensor(name + ".key_scale", {heads}), weights.tensor(name + ".value_scale", {heads})};
  const auto used = nn::used_scalars(stored);
  return {weights.kept(used.decay), weights.kept(used.key_scale), weights.kept(used.value_scale)};
}

/// Stores the pairs of each row. A row's state is the leaky key averages, the last key and the last
/// value, (d) each. Token t completes the pair in its slot, so a row's first token has no pair.
class ContextualPart : public StatePart {
 public:
  ContextualPart(
      DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads)
      : StatePart(3 * d, PagedRows(2, d)), d_(d), heads_(heads), width_(d / heads),
        maps_(weights.affine(name + ".maps", 2 * d, d)),
        project_(weights.affine(name + ".c_proj", d, d)),
        factors_(factors_of(weights, name, heads)), mix_(weights.vector(name + ".mix", heads)) {}
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    const auto longest = append(slots_, chunk);
    mapped_.fit(chunk.n, 2 * d_);
    read_.fit(chunk.n, padded(d_));
    scores_.fit(chunk.threads, longest);
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    maps_.multiply(x.data, chunk.n, x.stride, share, mapped_.data(), mapped_.stride());
    run_heads(chunk, share, heads_, project_, read_, y, ldy,
        [&](const Run& run, std::int64_t h) { head(run, h, scores_.of(share.thread)); });
  }

 private:
  // Computes one head of a row's tokens in order.
  void head(const Run& run, std::int64_t head, float* scores) {
    const auto at = head * width_;
    float *const sums = state(run.row) + at, *const key = sums + d_, *const value = key + d_;
    const auto oldest = slots_.begin(run.row) + 1;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const float* const in = mapped_.row(run.begin + i) + at;
      const float* const next = in + d_;
      float* const out = read_.row(run.begin + i) + at;
      const auto position = run.position + i;
      if (position > 0) {
        std::copy_n(key, width_, slots_.slot(run.row, position, 0) + at);
        mixed_value(value, next, width_, mix_[head], factors_.value_scale[head],
            slots_.slot(run.row, position, 1) + at);
      }
      leaky_key(in, width_, factors_.decay[head], factors_.key_scale[head], sums, key);
      std::copy_n(next, width_, value);
      if (position < oldest) {
        std::fill_n(out, width_, 0.0f);
        continue;
      }
      const Seen seen{run.row, oldest, position + 1, at, width_};
      paged_scores(slots_, seen, key, 1, scores);
      paged_values(slots_, seen, scores, out);
    }
  }

  std::int64_t d_, heads_, width_;
  Affine maps_, project_;
  UnitFactors factors_;
  const float* mix_;      // (heads)
  Buffer mapped_, read_;  // (n, 2 d): inputs of keys, values; (n, d)
  ScoreBuffers scores_;
};

/// A row's state is its leaky key averages, (d).
class PersistentPart : public StatePart {
 public:
  PersistentPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
      std::int64_t heads, std::int64_t slots)
      : StatePart(d), d_(d), heads_(heads), width_(d / heads), slots_(slots),
        map_(weights.affine(name + ".map", d, d)), project_(weights.affine(name + ".c_proj", d, d)),
        factors_(factors_of(weights, name, heads)) {
    const auto keys = weights.tensor(name + ".memory_keys", {heads, slots, width_});
    const auto values = weights.tensor(name + ".memory_values", {heads, slots, width_});
    for (std::int64_t h = 0; h < heads; ++h) {
      keys_.push_back(weights.packed(keys[h]));
      values_.push_back(weights.packed(values[h].t()));
    }
  }
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    mapped_.fit(chunk.n, d_);
    asking_.fit(heads_ * chunk.n, padded(width_));
    weights_.fit(heads_ * chunk.n, padded(slots_));
    read_.fit(chunk.n, padded(d_));
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    map_.multiply(x.data, chunk.n, x.stride, share, mapped_.data(), mapped_.stride());
#pragma omp barrier
    for (auto h = share.begin(heads_); h < share.end(heads_); ++h) head(chunk, h);
#pragma omp barrier
    project_.multiply(read_.data(), chunk.n, read_.stride(), share, y, ldy);
  }

 private:
  void head(const Chunk& chunk, std::int64_t head) {
    const auto n = chunk.n, at = head * width_, first = head * n;
    const float key_scale = factors_.key_scale[head];
    for (const auto& run : chunk.runs)
      for (auto i = run.begin; i < run.begin + run.count; ++i)
        leaky_key(mapped_.row(i) + at, width_, factors_.decay[head], key_scale * key_scale,
            state(run.row) + at, asking_.row(first + i));
    const PackedMatrix &keys = keys_[static_cast<std::size_t>(head)],
                       &values = values_[static_cast<std::size_t>(head)];
    keys.multiply(asking_.row(first), n, asking_.stride(), 0, keys.panels(), weights_.row(first),
        weights_.stride());
    for (auto i = first; i < first + n; ++i) {
      float* const weights = weights_.row(i);
      const auto total = exp_weights(weights, slots_, max_of(weights, slots_), 1, weights);
      scale(factors_.value_scale[head] / static_cast<float>(total), slots_, weights);
    }
    values.multiply(weights_.row(first), n, weights_.stride(), 0, values.panels(),
        read_.data() + at, read_.stride());
  }

  std::int64_t d_, heads_, width_, slots_;
  Affine map_, project_;
  UnitFactors factors_;
  std::vector<PackedMatrix> keys_, values_;  // for each head: (slots, width), (width, slots)
  Buffer mapped_, asking_, weights_, read_;  // (n, d), heads (n, width), heads (n, slots), (n, d)
};

}  // namespace

LayeredModel layered_mosaic(nn::Model& model, Precision precision) {
  constexpr double kEpsilon = nn::Mosaic::kNormEpsilon;
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto d = shape.d_model;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    const auto slots =
        model.architecture->named_parameters()[name + ".persistent.memory_keys"].size(1);
    out.steps.push_back({out.weights.norm(name + ".ln_1", d, kEpsilon),
        std::make_unique<ContextualPart>(out.weights, name + ".contextual", d, shape.heads)});
    out.steps.push_back({out.weights.norm(name + ".ln_2", d, kEpsilon),
        std::make_unique<PersistentPart>(
            out.weights, name + ".persistent", d, shape.heads, slots)});
  }
  out.final_norm = out.weights.norm("ln_f", d, kEpsilon);
  if (model.options.mosaic.scale_output)
    out.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  return out;
}

}  // namespace infer
