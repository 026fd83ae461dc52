// Decoding of attention with relative positions (nn/layers/attention.h).

#include "infer/loops/layered_models.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/transformer_xl.h"

namespace infer {
namespace {

// The bits of a row of a product depend on the number of rows. Always computing this number makes
// them reproducible.
constexpr std::int64_t kDistancesTogether = 64;

/// A RelativePart decodes attention with relative positions. It stores keys and values for each
/// row.
class RelativePart : public StatePart {
 public:
  /// `name`: prefix of the attention's weights; `biases`: prefix of the position biases; `clamp`:
  /// distance limit in tokens, 0: none.
  RelativePart(DecodeWeights& weights, const std::string& name, const std::string& biases,
      std::int64_t d, std::int64_t heads, LayerPast past, std::int64_t clamp)
      : StatePart(0, PagedRows(2, d)), d_(d), heads_(heads), width_(d / heads), clamp_(clamp),
        past_(past), in_(weights.affine(name + ".c_attn", 3 * d, d)),
        project_(weights.affine(name + ".c_proj", d, d)),
        content_(weights.tensor(biases + ".content", {heads, width_}).const_data_ptr<float>()),
        position_(weights.tensor(biases + ".position", {heads, width_}).const_data_ptr<float>()),
        of_distance_(weights.tensor(name + ".c_position.weight", {d, d})) {}
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    made_.fit(chunk.n, 3 * d_);
    asking_.fit(chunk.n, 2 * d_);
    read_.fit(chunk.n, padded(d_));
    longest_ = past_.extend(slots_, chunk);
    scores_.fit(chunk.threads, 2 * longest_);
    if (distances_.defined() && distances_.size(0) >= longest_) return;
    const auto room = std::max(kDistancesTogether,
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest_))));
    std::vector<torch::Tensor> pieces;
    for (const auto& some : nn::distance_vectors(room, clamp_, d_).split(kDistancesTogether))
      pieces.push_back(torch::linear(some.to(torch::kFloat32), of_distance_));
    distances_ = torch::cat(pieces);
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    in_.multiply(x.data, chunk.n, x.stride, share, made_.data(), made_.stride());
    run_heads(chunk, share, heads_, project_, read_, y, ldy,
        [&](const Run& run, std::int64_t h) { attend(run, h, scores_.of(share.thread)); });
  }

 private:
  // Computes one head of a row's tokens.
  void attend(const Run& run, std::int64_t head, float* scores) {
    const auto at = head * width_;
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width_)));
    const float* const distances = distances_.const_data_ptr<float>() + at;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto position = run.position + i, place = run.begin + i;
      const float* const made = made_.row(place) + at;
      std::copy_n(made + d_, width_, slots_.slot(run.row, position, 0) + at);
      std::copy_n(made + 2 * d_, width_, slots_.slot(run.row, position, 1) + at);
      float *const by_content = asking_.row(place) + at, *const by_position = by_content + d_;
      add_scaled(made, content_ + at, 1, width_, by_content);
      add_scaled(made, position_ + at, 1, width_, by_position);
      const Seen seen{run.row, past_.oldest(run, position), position + 1, at, width_};
      const auto held = seen.end - seen.begin;
      paged_scores(slots_, seen, by_content, scale, scores);
      attention_scores(by_position, distances + (distances_.size(0) - held) * d_, d_, held, width_,
          scale, scores + held);
      add(scores + held, held, scores);
      paged_values(slots_, seen, scores, read_.row(place) + at);
    }
  }

  std::int64_t d_, heads_, width_, clamp_;
  LayerPast past_;
  Affine in_, project_;
  const float *content_, *position_;  // biases, (heads, width)
  torch::Tensor of_distance_;         // (d, d)
  torch::Tensor distances_;           // (room, d): for distances room - 1, ..., 1, 0
  Buffer made_, asking_, read_;       // q, k, v (n, 3 d); q plus each bias (n, 2 d); (n, d)
  ScoreBuffers scores_;
  std::int64_t longest_ = 0;
};

}  // namespace

LayeredModel layered_transformer_xl(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto& options = model.options.transformer;
  const auto& of = dynamic_cast<const nn::TransformerXl&>(*model.architecture);
  const auto d = shape.d_model;
  const bool pre = options.norm == "pre";
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    const auto norm = [&](const char* which, bool before) {
      return pre == before ? std::optional(out.weights.norm(name + which, d, options.norm_epsilon))
                           : std::nullopt;
    };
    const auto biases = model.options.transformer_xl.shared_biases ? "biases" : name + ".biases";
    const LayerPast past{of.lengths().at(i), of.same_length()};
    out.steps.push_back({norm(".ln_1", true),
        std::make_unique<RelativePart>(
            out.weights, name + ".attn", biases, d, shape.heads, past, of.clamp_length()),
        norm(".ln_1", false)});
    out.steps.push_back(
        {norm(".ln_2", true), feed_forward(out, name, model.options), norm(".ln_2", false)});
  }
  if (options.final_norm && pre) out.final_norm = out.weights.norm("ln_f", d, options.norm_epsilon);
  return out;
}

}  // namespace infer
