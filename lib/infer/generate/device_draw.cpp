#include "infer/generate/device_draw.h"

#include <algorithm>

#include "infer/generate/generator_draw.h"
#include "nn/base/download.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

using torch::Tensor;

// Returns (B, 2) float64: scale_of_draw(), or 0 for temperature 0, and the random number.
Tensor draw_settings(const std::vector<RowDraw>& rows) {
  auto all = torch::empty({std::ssize(rows), 2}, torch::kFloat64);
  auto* to = all.data_ptr<double>();
  for (const auto& row : rows) {
    *to++ = row.temperature == 0 ? 0 : static_cast<double>(scale_of_draw(row.temperature));
    *to++ = row.number;
  }
  return all;
}

// Returns (B, 1): the first token at which the cumulated mass exceeds number * all. `best` (B, 1)
// is the highest log-probability of each row.
Tensor drawn(const DrawOptions& options, const Tensor& log_p, const Tensor& best,
             const Tensor& scale, const Tensor& number) {
  const auto words = log_p.size(1);
  const bool counted = options.top_k > 0 && options.top_k < words;
  const auto most = counted ? options.top_k : words;
  Tensor chosen = log_p, ids;  // undefined: all tokens, by id
  if (counted || options.top_p < 1) {
    const auto [sorted, order] = log_p.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
    chosen = sorted.narrow(1, 0, most), ids = order;
  }
  const Tensor mass =
      ((chosen - best) * scale.to(torch::kFloat32)).exp().to(torch::kFloat64).cumsum(1);
  Tensor all = mass.narrow(1, most - 1, 1);
  if (options.top_p < 1)
    all = mass.gather(1, torch::searchsorted(mass, options.top_p * all).clamp_max(most - 1));
  const Tensor at = torch::searchsorted(mass, number * all, /*out_int32=*/false, /*right=*/true)
                        .clamp_max(most - 1);
  return ids.defined() ? ids.gather(1, at) : at;
}

}  // namespace

std::vector<DrawnWord> draw_there(const DrawOptions& options, const Tensor& log_p,
                                  const std::vector<RowDraw>& rows) {
  const torch::NoGradGuard no_gradient;
  const auto by = nn::upload(draw_settings(rows), log_p.device()).split(1, 1);
  const Tensor best = log_p.amax(1, /*keepdim=*/true);
  Tensor words = log_p.argmax(1, /*keepdim=*/true);
  if (std::ranges::any_of(rows, [](const auto& row) { return row.temperature > 0; }))
    words = torch::where(by[0] > 0, drawn(options, log_p, best, by[0], by[1]), words);
  const auto got = nn::Download({words, log_p.gather(1, words), best}, torch::kFloat64).get();
  const auto number = [&](std::size_t of, std::size_t row) {
    return got[of].const_data_ptr<double>()[row];
  };
  std::vector<DrawnWord> all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    expect_numbers(number(2, row));
    all.push_back({static_cast<std::int64_t>(number(0, row)), number(1, row)});
  }
  return all;
}

}  // namespace infer
