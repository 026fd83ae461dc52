// Decoding of one LSTM layer (nn/arch/lstm.h).

#include "infer/loops/layered_models.h"
#include "infer/loops/recurrence_kernels.h"

namespace infer {
namespace {

/// A row's state is h, then c. Rows advance together, step by step.
class LstmPart : public StatePart {
 public:
  LstmPart(DecodeWeights& weights, std::int64_t layer, std::int64_t in, std::int64_t width)
      : StatePart(2 * width), width_(width) {
    const auto end = "_l" + std::to_string(layer);
    const auto bias =
        weights.tensor("bias_ih" + end, {4 * width}) + weights.tensor("bias_hh" + end, {4 * width});
    of_input_ = {
        weights.packed(weights.tensor("weight_ih" + end, {4 * width, in})), weights.kept(bias)};
    of_last_ = {weights.packed(weights.tensor("weight_hh" + end, {4 * width, width}))};
  }
  std::int64_t out() const override { return width_; }
  void prepare(const Chunk& chunk) override {
    const auto runs = std::ssize(chunk.runs);
    inputs_.fit(chunk.n, 4 * width_);
    lasts_.fit(runs, 4 * width_);
    h_.fit(runs, padded(width_));
    order_.resize(chunk.runs.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(
        order_, [&](auto a, auto b) { return chunk.runs[a].count > chunk.runs[b].count; });
    for (std::int64_t k = 0; k < runs; ++k)
      std::copy_n(state(chunk.runs[order_[static_cast<std::size_t>(k)]].row), width_, h_.row(k));
  }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    of_input_.multiply(x.data, chunk.n, x.stride, share, inputs_.data(), inputs_.stride());
#pragma omp barrier
    const auto first = share.begin(width_), last = share.end(width_);
    auto going = std::ssize(order_);
    for (std::int64_t t = 0;; ++t) {
      const auto run_of = [&](std::int64_t k) -> const Run& {
        return chunk.runs[order_[static_cast<std::size_t>(k)]];
      };
      while (going > 0 && run_of(going - 1).count <= t) --going;
      if (going == 0) break;
      of_last_.multiply(h_.data(), going, h_.stride(), share, lasts_.data(), lasts_.stride());
#pragma omp barrier
      for (std::int64_t k = 0; k < going; ++k) {
        const Run& run = run_of(k);
        float *const last_h = state(run.row), *const c = last_h + width_;
        float* const h = h_.row(k);
        lstm_step(inputs_.row(run.begin + t), lasts_.row(k), width_, first, last, c, h);
        std::copy(h + first, h + last, y + (run.begin + t) * ldy + first);
        std::copy(h + first, h + last, last_h + first);
      }
#pragma omp barrier
    }
  }

 private:
  std::int64_t width_;
  Affine of_input_, of_last_;
  std::vector<std::size_t> order_;  // runs by descending length: those with further steps come
                                    // first
  Buffer inputs_, lasts_, h_;       // (n, 4 width); (runs, 4 width); (runs, width), in that order
};

}  // namespace

LayeredModel layered_lstm(nn::Model& model, Precision precision) {
  auto out = started(model, precision);
  out.residual = false;
  out.key_is_output = true;
  const auto& shape = model.options.shape;
  const auto d = shape.d_model,
             width = model.options.lstm.d_recurrent > 0 ? model.options.lstm.d_recurrent : d;
  for (std::int64_t i = 0; i < shape.layers; ++i)
    out.steps.push_back(
        {{}, std::make_unique<LstmPart>(out.weights, i, i == 0 ? d : width, width)});
  if (width != d)
    out.steps.push_back(
        {{}, std::make_unique<AffinePart>(out.weights.affine("projection", d, width))});
  return out;
}

}  // namespace infer
