#include "infer/stores/neighbours.h"

namespace infer {
namespace {

// Scores minus each row's maximum, so that exp() cannot overflow.
struct Shifted {
  Tensor scores, largest;  // (R, k), (R, 1)
  explicit Shifted(const Tensor& all)
      : largest(all.amax(1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::lowest())) {
    scores = all - largest;
  }
};

Tensor log_of(const Tensor& sum, const Tensor& largest, double divisor) {
  return (sum.to(torch::kFloat64).log() + largest.to(torch::kFloat64) / divisor)
      .clamp_min(nn::kUnseen);
}

Tensor weighted(Tensor logits, const Neighbours& found) {
  return found.log_weights.defined() ? logits.add_(found.log_weights) : logits;
}

}  // namespace

Neighbours Neighbours::slice(std::int64_t begin, std::int64_t end) const {
  return taken([&](const Tensor& of) { return of.slice(0, begin, end); });
}

Neighbours Neighbours::select(const Tensor& rows) const {
  return taken([&](const Tensor& of) { return of.index_select(0, rows); });
}

Neighbours Neighbours::best(std::int64_t k) const {
  const Tensor order = std::get<1>(torch::sort(scores, /*stable=*/true, 1, true)).slice(1, 0, k);
  return taken([&](const Tensor& of) { return of.gather(1, order); });
}

Tensor Neighbours::logits(double divisor) const {
  return log_weights.defined() ? scores / divisor + log_weights : scores / divisor;
}

Tensor Neighbours::rank_of(const Tensor& targets) const {
  const Tensor match = labels == targets.unsqueeze(1);
  const Tensor first = match.to(torch::kUInt8).argmax(1);  // the first among equals
  return torch::where(match.any(1), first, torch::full_like(first, labels.size(1)));
}

Neighbours no_neighbours(std::int64_t rows, std::int64_t k) {
  const Tensor none = torch::full({rows, k}, -1, torch::kInt64);
  return {torch::full({rows, k}, -std::numeric_limits<float>::infinity(), torch::kFloat32), none,
      none.clone(), none.clone()};
}

void put_neighbours(Neighbours& to, const Tensor& rows, const Neighbours& from) {
  to.scores.index_copy_(0, rows, from.scores);
  to.labels.index_copy_(0, rows, from.labels);
  to.rows.index_copy_(0, rows, from.rows);
  to.stores.index_copy_(0, rows, from.stores);
  if (!from.log_weights.defined() && !to.log_weights.defined()) return;
  if (!to.log_weights.defined()) to.log_weights = torch::zeros_like(to.scores);
  to.log_weights.index_copy_(
      0, rows, from.log_weights.defined() ? from.log_weights : torch::zeros_like(from.scores));
}

nn::Masses store_masses(
    const Neighbours& found, const Tensor& targets, std::span<const double> divisors) {
  const Shifted shifted(found.scores);
  const Tensor match = (found.labels == targets.unsqueeze(1)).to(torch::kFloat32);
  std::vector<Tensor> all, positive;
  for (const double divisor : divisors) {
    const Tensor mass = weighted(shifted.scores / divisor, found).exp_();
    all.push_back(log_of(mass.sum(1), shifted.largest.squeeze(1), divisor));
    positive.push_back(log_of((mass * match).sum(1), shifted.largest.squeeze(1), divisor));
  }
  return {torch::stack(all), torch::stack(positive)};
}

Tensor store_token_masses(const Neighbours& found, double divisor, std::int64_t vocabulary) {
  const Shifted shifted(found.scores);
  const Tensor mass =
      weighted(shifted.scores / divisor, found).exp_();  // 0 where nothing was found
  const Tensor sums = torch::zeros({found.size(), vocabulary}, torch::kFloat32)
                          .scatter_add_(1, found.labels.clamp_min(0), mass);
  return log_of(sums, shifted.largest, divisor).to(torch::kFloat32);
}

}  // namespace infer
