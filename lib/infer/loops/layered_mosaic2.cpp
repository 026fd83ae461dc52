// Decoding of the two contextual memories of Memory Mosaics v2 (nn/arch/mosaic2.h), side by
// side.

#include "infer/loops/layered_models.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/recurrence_kernels.h"
#include "nn/arch/mosaic2.h"

namespace infer {
namespace {

/// Stores the pairs of each row. A row's state is, for both memories, the key averages, the last
/// keys and the last values, (2 d) each, then the levels (2 heads). Token t completes the pair in
/// its slot, so a row's first token has no pair.
class Mosaic2Part : public StatePart {
 public:
  /// `name`: of the layer. `near` and `far` are the reaches of short_term and long_term.
  Mosaic2Part(DecodeWeights& weights, const std::string& name, std::int64_t d, std::int64_t heads,
      const nn::PairReach& near, const nn::PairReach& far)
      : StatePart(6 * d + 2 * heads, PagedRows(2, 2 * d)), d_(d), heads_(heads), width_(d / heads),
        near_(near), far_(far) {
    begin_with(6 * d, kNoLevel);
    const std::string memories[] = {name + ".short_term", name + ".long_term"};
    const auto both = [&](const char* which, std::int64_t out, std::int64_t in,
                          std::int64_t along) {
      return Affine{weights.packed(torch::cat({weights.tensor(memories[0] + which, {out, in}),
                                                  weights.tensor(memories[1] + which, {out, in})},
          along))};
    };
    maps_ = both(".maps.weight", 2 * d, d, 0);
    gates_ = both(".gates.weight", 2 * heads, d, 0);
    project_ = both(".c_proj.weight", d, d, 1);
    for (const auto& memory : memories) {
      const auto number = [&](const char* which) {
        return weights.tensor(memory + which, {heads});
      };
      const auto used = nn::used_numbers({number(".beta_0"), number(".beta_1"), number(".alpha"),
          number(".value_scale"), number(".mix")});
      for (std::int64_t h = 0; h < heads; ++h) {
        const auto of = [h](const torch::Tensor& numbers) { return numbers[h].item<float>(); };
        of_head_.push_back(
            {of(used.beta_0), of(used.beta_1), of(used.alpha), of(used.value_scale), of(used.mix)});
      }
    }
  }
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override {
    const auto longest = append(slots_, chunk);
    mapped_.fit(chunk.n, 4 * d_);
    gated_.fit(chunk.n, 4 * heads_);
    read_.fit(chunk.n, padded(2 * d_));
    scores_.fit(chunk.threads, longest);
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    maps_.multiply(x.data, chunk.n, x.stride, share, mapped_.data(), mapped_.stride());
    gates_.multiply(x.data, chunk.n, x.stride, share, gated_.data(), gated_.stride());
    run_heads(chunk, share, 2 * heads_, project_, read_, y, ldy,
        [&](const Run& run, std::int64_t h) { head(run, h, scores_.of(share.thread)); });
  }

 private:
  struct Head {
    float beta_0, beta_1, alpha, value_scale, mix;  // values after transformation
  };
  // Computes one head of a row's tokens in order.
  void head(const Run& run, std::int64_t head, float* scores) {
    const Head& of = of_head_[static_cast<std::size_t>(head)];
    const auto memory = head / heads_, own = head % heads_, at = head * width_;
    float *const sums = state(run.row) + at, *const key = sums + 2 * d_,
                 *const value = key + 2 * d_;
    float* const level = state(run.row) + 6 * d_ + head;
    const nn::PairReach& reach = memory == 0 ? near_ : far_;
    const auto oldest = slots_.begin(run.row) + 1;
    for (auto i = run.begin; i < run.begin + run.count; ++i) {
      const float* const in = mapped_.row(i) + memory * 2 * d_ + own * width_;
      const float* const next = in + d_;
      const float* const gates = gated_.row(i) + memory * 2 * heads_ + own;
      float* const out = read_.row(i) + at;
      const auto position = run.position + i - run.begin;
      if (position > 0) {
        std::copy_n(key, width_, slots_.slot(run.row, position, 0) + at);
        mixed_value(
            value, next, width_, of.mix, of.value_scale, slots_.slot(run.row, position, 1) + at);
      }
      gated_key(in, width_, gates[0], -std::abs(gates[heads_]), level, sums, key);
      std::copy_n(next, width_, value);
      const auto begin =
          reach.farthest > 0 ? std::max(oldest, position - reach.farthest + 1) : oldest;
      const auto end = position + 2 - reach.nearest;  // after the newest pair in reach
      if (begin >= end) {
        std::fill_n(out, width_, 0.0f);
        continue;
      }
      const Seen seen{run.row, begin, end, at, width_};
      const float beta =
          of.beta_1 * std::pow(static_cast<float>(end - begin), of.alpha) + of.beta_0;
      paged_scores(slots_, seen, key, beta, scores);
      paged_values(slots_, seen, scores, out);
    }
  }

  std::int64_t d_, heads_, width_;  // number of heads of one memory
  nn::PairReach near_, far_;
  Affine maps_, gates_, project_;
  std::vector<Head> of_head_;     // short-term memory first
  Buffer mapped_, gated_, read_;  // (n, 4 d), (n, 4 heads), (n, 2 d)
  ScoreBuffers scores_;
};

}  // namespace

LayeredModel layered_mosaic2(nn::Model& model, Precision precision) {
  constexpr double kEpsilon = nn::Mosaic2::kNormEpsilon;
  auto out = started(model, precision);
  const auto& shape = model.options.shape;
  const auto& options = model.options.mosaic2;
  const auto d = shape.d_model;
  const auto norm = [&](const std::string& name) {
    return out.weights.norm(name, d, kEpsilon, /*rms=*/true);
  };
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const auto name = layer_name(i);
    out.steps.push_back({norm(name + ".ln_1"),
        std::make_unique<Mosaic2Part>(out.weights, name, d, shape.heads,
            nn::PairReach{1, options.short_term}, nn::PairReach{options.delay, 0})});
    out.steps.push_back(
        {norm(name + ".ln_2"), std::make_unique<FeedForwardPart>(out.weights, name + ".mlp", d,
                                   shape.ffn_width(), nn::Activation::silu, /*gated=*/true)});
  }
  out.final_norm = norm("ln_f");
  return out;
}

}  // namespace infer
