#include "infer/loops/lstm_part.h"

#include <algorithm>
#include <numeric>

#include "infer/loops/recurrence_kernels.h"

namespace infer {

LstmPart::LstmPart(DecodeWeights& weights, std::int64_t layer, std::int64_t in, std::int64_t width)
    : StatePart(2 * width), width_(width) {
  const auto end = "_l" + std::to_string(layer);
  const auto bias =
      weights.tensor("bias_ih" + end, {4 * width}) + weights.tensor("bias_hh" + end, {4 * width});
  of_input_ = {weights.packed(weights.tensor("weight_ih" + end, {4 * width, in})),
               weights.kept(bias)};
  of_last_ = {weights.packed(weights.tensor("weight_hh" + end, {4 * width, width}))};
}

void LstmPart::prepare(const Chunk& chunk) {
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

void LstmPart::run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) {
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

}  // namespace infer
