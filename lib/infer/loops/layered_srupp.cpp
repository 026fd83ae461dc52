// Decoding of an SRU++ layer (nn/arch/srupp.h).

#include "infer/loops/layered_models.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/srupp.h"

namespace infer {
namespace {

/// A row's state is its cell, (d). Stores keys and values if the layer attends.
class SruppPart : public StatePart {
 public:
  SruppPart(DecodeWeights& weights, const std::string& name, const nn::ModelOptions& options,
      std::int64_t width, LayerPast past)
      : StatePart(options.shape.d_model, PagedRows(2, width)), d_(options.shape.d_model),
        width_(width), heads_(options.shape.heads), past_(past),
        attends_(weights.has(name + ".rezero")),
        project_(weights.affine(name + ".project", width, d_)),
        expand_(weights.affine(name + ".expand", 3 * d_, width)),
        norm_(weights.norm(name + ".norm", width, options.transformer.norm_epsilon)) {
    if (attends_) {
      keys_values_ = weights.affine(name + ".keys_values", 2 * width, width);
      rezero_ = weights.tensor(name + ".rezero", {1}).item<float>();
    }
    const auto bias = [&](const char* which, double start) {
      return weights.kept(weights.tensor(name + which, {d_}) + start);
    };
    cell_ = {weights.vector(name + ".cell_forget", d_), weights.vector(name + ".cell_highway", d_),
        bias(".forget_bias", options.srupp.forget_bias),
        bias(".highway_bias", options.srupp.highway_bias)};
  }
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    asked_.fit(chunk.n, padded(width_));
    made_.fit(chunk.n, 2 * width_);
    read_.fit(chunk.n, padded(width_));
    normed_.fit(chunk.n, padded(width_));
    gates_.fit(chunk.n, 3 * d_);
    if (attends_) scores_.fit(chunk.threads, past_.extend(slots_, chunk));
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    const auto n = chunk.n;
    project_.multiply(x.data, n, x.stride, share, asked_.data(), asked_.stride());
#pragma omp barrier
    if (attends_) {
      keys_values_.multiply(asked_.data(), n, asked_.stride(), share, made_.data(), made_.stride());
#pragma omp barrier
      chunk.each_head(share, heads_,
          [&](const Run& run, std::int64_t h) { attend(run, h, scores_.of(share.thread)); });
#pragma omp barrier
    }
    for (auto i = share.begin(n); i < share.end(n); ++i) {
      if (attends_) add_scaled(asked_.row(i), read_.row(i), rezero_, width_, read_.row(i));
      norm_(attends_ ? read_.row(i) : asked_.row(i), normed_.row(i));
    }
#pragma omp barrier
    expand_.multiply(normed_.data(), n, normed_.stride(), share, gates_.data(), gates_.stride());
#pragma omp barrier
    const auto first = share.begin(d_), last = share.end(d_);
    for (const auto& run : chunk.runs)
      for (auto i = run.begin; i < run.begin + run.count; ++i)
        sru_step(gates_.row(i), x[i], cell_, d_, first, last, state(run.row), y + i * ldy);
  }
  Rows keys() const override { return normed_.rows(); }

 private:
  // Computes one head of a row's tokens.
  void attend(const Run& run, std::int64_t head, float* scores) {
    const auto width = width_ / heads_, at = head * width;
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto position = run.position + i;
      const float* const made = made_.row(run.begin + i) + at;
      std::copy_n(made, width, slots_.slot(run.row, position, 0) + at);
      std::copy_n(made + width_, width, slots_.slot(run.row, position, 1) + at);
      const Seen seen{run.row, past_.oldest(run, position), position + 1, at, width};
      paged_scores(slots_, seen, asked_.row(run.begin + i) + at, scale, scores);
      paged_values(slots_, seen, scores, read_.row(run.begin + i) + at);
    }
  }

  std::int64_t d_, width_, heads_;
  LayerPast past_;
  bool attends_;
  Affine project_, keys_values_, expand_;
  float rezero_ = 0;
  LayerNormed norm_;
  SruCell cell_;
  Buffer asked_, made_, read_, normed_, gates_;  // (n, width), (n, 2 width), 2 (n, width), (n, 3 d)
  ScoreBuffers scores_;
};

}  // namespace

LayeredModel layered_srupp(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  out.residual = false;
  const auto& of = dynamic_cast<const nn::Srupp&>(*model.architecture);
  for (std::int64_t i = 0; i < model.options.shape.layers; ++i)
    out.steps.push_back({{}, std::make_unique<SruppPart>(out.weights, layer_name(i), model.options,
                                 of.width(), LayerPast{of.lengths().at(i), of.same_length()})});
  return out;
}

}  // namespace infer
