#include "infer/loops/mosaic2_part.h"

#include <algorithm>
#include <cmath>

#include "infer/decode/chosen_rows.h"
#include "infer/loops/layer_past.h"
#include "infer/loops/recurrence_kernels.h"

namespace infer {

Mosaic2Part::Mosaic2Part(DecodeWeights& weights, const std::string& name, std::int64_t d,
                         std::int64_t heads, const nn::PairReach& near, const nn::PairReach& far)
    : d_(d), heads_(heads), width_(d / heads), near_(near), far_(far), pairs_(2, 2 * d) {
  const std::string memories[] = {name + ".short_term", name + ".long_term"};
  const auto both = [&](const char* which, std::int64_t out, std::int64_t in, std::int64_t along) {
    return Affine{weights.packed(torch::cat({weights.tensor(memories[0] + which, {out, in}),
                                             weights.tensor(memories[1] + which, {out, in})},
                                            along))};
  };
  maps_ = both(".maps.weight", 2 * d, d, 0);
  gates_ = both(".gates.weight", 2 * heads, d, 0);
  project_ = both(".c_proj.weight", d, d, 1);
  for (const auto& memory : memories) {
    const auto number = [&](const char* which) { return weights.tensor(memory + which, {heads}); };
    const auto used = nn::used_numbers({number(".beta_0"), number(".beta_1"), number(".alpha"),
                                        number(".value_scale"), number(".mix")});
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto of = [h](const torch::Tensor& numbers) { return numbers[h].item<float>(); };
      of_head_.push_back(
          {of(used.beta_0), of(used.beta_1), of(used.alpha), of(used.value_scale), of(used.mix)});
    }
  }
}

void Mosaic2Part::open(std::int64_t rows) {
  const std::vector<float> none(static_cast<std::size_t>(2 * d_), 0.0f);
  const std::vector<float> levels(static_cast<std::size_t>(2 * heads_), kNoLevel);
  kept_.assign(static_cast<std::size_t>(rows), {none, levels, none, none});
  pairs_.open(rows);
}

void Mosaic2Part::clear(std::size_t row) {
  std::ranges::fill(kept_[row].sums, 0.0f);
  std::ranges::fill(kept_[row].levels, kNoLevel);
  pairs_.clear(row);
}

void Mosaic2Part::select(const std::vector<std::int64_t>& rows) {
  kept_ = chosen(kept_, rows);
  pairs_.select(rows);
}

void Mosaic2Part::forget(std::int64_t keep) { pairs_.forget(keep); }

void Mosaic2Part::prepare(const Chunk& chunk) {
  const auto longest = append(pairs_, chunk);
  mapped_.fit(chunk.n, 4 * d_);
  gated_.fit(chunk.n, 4 * heads_);
  read_.fit(chunk.n, padded(2 * d_));
  scores_.fit(chunk.threads, longest);
}

void Mosaic2Part::run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) {
  maps_.multiply(x.data, chunk.n, x.stride, share, mapped_.data(), mapped_.stride());
  gates_.multiply(x.data, chunk.n, x.stride, share, gated_.data(), gated_.stride());
#pragma omp barrier
  chunk.each_head(share, 2 * heads_,
                  [&](const Run& run, std::int64_t h) { head(run, h, scores_.of(share.thread)); });
#pragma omp barrier
  project_.multiply(read_.data(), chunk.n, read_.stride(), share, y, ldy);
}

// Computes one head of a row's tokens in order.
void Mosaic2Part::head(const Run& run, std::int64_t head, float* scores) {
  const Head& of = of_head_[static_cast<std::size_t>(head)];
  Kept& kept = kept_[run.row];
  const auto memory = head / heads_, own = head % heads_, at = head * width_;
  float *const key = kept.key.data() + at, *const value = kept.value.data() + at;
  const nn::PairReach& reach = memory == 0 ? near_ : far_;
  const auto oldest = pairs_.begin(run.row) + 1;
  for (auto i = run.begin; i < run.begin + run.count; ++i) {
    const float* const in = mapped_.row(i) + memory * 2 * d_ + own * width_;
    const float* const next = in + d_;
    const float* const gates = gated_.row(i) + memory * 2 * heads_ + own;
    float* const out = read_.row(i) + at;
    const auto position = run.position + i - run.begin;
    if (position > 0) {
      std::copy_n(key, width_, pairs_.slot(run.row, position, 0) + at);
      mixed_value(value, next, width_, of.mix, of.value_scale,
                  pairs_.slot(run.row, position, 1) + at);
    }
    gated_key(in, width_, gates[0], -std::abs(gates[heads_]), kept.levels.data() + head,
              kept.sums.data() + at, key);
    std::copy_n(next, width_, value);
    const auto begin =
        reach.farthest > 0 ? std::max(oldest, position - reach.farthest + 1) : oldest;
    const auto end = position + 2 - reach.nearest;  // after the newest pair in reach
    if (begin >= end) {
      std::fill_n(out, width_, 0.0f);
      continue;
    }
    const Seen seen{run.row, begin, end, at, width_};
    const float beta = of.beta_1 * std::pow(static_cast<float>(end - begin), of.alpha) + of.beta_0;
    paged_scores(pairs_, seen, key, beta, scores);
    paged_values(pairs_, seen, scores, out);
  }
}

}  // namespace infer
