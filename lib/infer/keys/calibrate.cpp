#include "infer/keys/calibrate.h"

#include "nn/memory/joint_loss.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kNeighbours = 1024, kProbes = 32;  // defaults of search
const std::vector<double> kJointSteps = {0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 8, 16},
                          kOwnSteps = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2, 4},
                          kShares = {kLeastWorth, 0.05, 0.1, 0.2, 0.3, 0.5};

double to_four(double value) { return std::stod(fmt::format("{:.4g}", value)); }

double loss_of(const Tensor& log_prob) { return -log_prob.mean().item<double>(); }

// Returns the best weight of `own` against `model`, log p (R) each, and its loss. The loss is
// convex in the weight.
std::pair<double, double> best_weight(const Tensor& model, const Tensor& own) {
  const Tensor there = torch::where(own.isnan(), model, own);
  const auto loss_at = [&](double weight) {
    return loss_of(torch::logaddexp(model + std::log1p(-weight), there + std::log(weight)));
  };
  double low = kLeastWorth, high = kMostWorth;
  while (high - low > 1e-4) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (loss_at(a) < loss_at(b) ? high : low) = loss_at(a) < loss_at(b) ? b : a;
  }
  return {to_four((low + high) / 2), loss_at((low + high) / 2)};
}

// Returns the bias that gives entries this average share of the softmax.
double bias_for(double share, const Tensor& all, const Tensor& log_z) {
  const Tensor seen = all > nn::kUnseen / 2;
  if (!seen.any().item<bool>()) return 0;
  const Tensor odds = (all - log_z).masked_select(seen);
  double low = -odds.max().item<double>() - 40, high = -odds.min().item<double>() + 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (torch::sigmoid(odds + middle).mean().item<double>() < share ? low : high) = middle;
  }
  return to_four((low + high) / 2);
}

Tensor positions_of(const Tensor& rows, std::span<const std::int64_t> places) {
  if (places.empty()) return rows;
  const Tensor all = torch::from_blob(
      const_cast<std::int64_t*>(places.data()), {std::ssize(places)}, torch::kInt64);
  return all.index_select(0, rows.flatten().clamp_min(0)).view(rows.sizes());
}

// Removes neighbours near the queries, which have these positions (R).
Neighbours without_near(
    const Neighbours& found, const Tensor& positions, std::span<const std::int64_t> places) {
  const Tensor far =
      (positions_of(found.rows, places) - positions.unsqueeze(1)).abs() > kHiddenAround;
  const Tensor shown = far.logical_and(found.rows >= 0);
  const auto hide = [&](const Tensor& of, const torch::Scalar& none) {
    return of.masked_fill(~shown, none);
  };
  const Neighbours left{hide(found.scores, -std::numeric_limits<float>::infinity()),
      hide(found.labels, -1), hide(found.rows, -1), hide(found.stores, -1), found.log_weights};
  return left.best(kNeighbours);
}

}  // namespace

store::Calibration calibrate(const CalibrationPiece& piece, double root_width, double unit) {
  store::Calibration best;
  best.tokens = static_cast<std::uint64_t>(piece.labels.size(0));
  double own_loss = HUGE_VAL, joint_loss = HUGE_VAL;
  for (const double step : kOwnSteps) {
    const double divisors[] = {to_four(step * root_width)};
    const nn::Masses seen = store_masses(piece.found, piece.labels, divisors);
    const Tensor own = torch::where(seen.all > nn::kUnseen / 2, seen.positive - seen.all, NAN)[0];
    const auto [share, loss] = best_weight(piece.log_prob, own);
    if (loss < own_loss) own_loss = loss, best.temperature = divisors[0], best.share = share;
  }
  for (const double step : kJointSteps) {
    const double temperature = to_four(step * unit), divisors[] = {temperature * root_width};
    const nn::Masses seen = store_masses(piece.found, piece.labels, divisors);
    const Tensor all = seen.all[0], positive = seen.positive[0];
    std::vector<double> biases;
    for (const double share : kShares) biases.push_back(bias_for(share, all, piece.log_z));
    // Also tries bias 0 if its share is within the range of kShares.
    if (biases.front() <= 0 && 0 <= biases.back()) biases.push_back(0);
    for (const double bias : biases) {
      const double loss =
          loss_of(nn::join({piece.log_prob, piece.log_z, all + bias, positive + bias}));
      if (loss < joint_loss)
        joint_loss = loss, best.joint_temperature = temperature, best.joint_bias = bias;
    }
  }
  return best;
}

std::optional<CalibrationPiece> calibration_piece(const Stores& store, std::int64_t first_row,
    std::span<const std::int64_t> places, const MakeWalk& make_walk) {
  if (store[0].manifest().rows < kLeastCalibrated) return std::nullopt;
  std::vector<EntryRange> ranges;
  for (std::int64_t i = 0; i < kPieces; ++i)
    if (const auto range = make_walk()->range_of({i, kPieces}); range.size() > 0)
      ranges.push_back(range);
  if (ranges.empty()) return std::nullopt;
  const auto each = static_cast<std::uint64_t>(kPieceTokens) / ranges.size();
  std::vector<Tensor> labels, keys, log_prob, log_z, positions;
  for (const EntryRange& range : ranges) {
    const auto walk = make_walk();
    walk->ask_log_probs();
    if (range.begin > 0) walk->resume(range.begin, {});
    std::uint64_t at = range.begin;
    const std::uint64_t end = range.begin + std::min(each, range.size());
    while (at < end) {
      auto block = walk->next();
      if (!block) break;
      block->arrive();
      const auto n = std::min(block->labels.size(0), static_cast<std::int64_t>(end - at));
      labels.push_back(block->labels.slice(0, 0, n).to(torch::kInt64));
      keys.push_back(block->keys.slice(0, 0, n));
      log_prob.push_back(block->log_probs.slice(0, 0, n).to(torch::kFloat64));
      log_z.push_back(block->log_z.slice(0, 0, n).to(torch::kFloat64));
      const auto first = static_cast<std::int64_t>(at) + (places.empty() ? first_row : 0);
      positions.push_back(torch::arange(first, first + n));
      at += static_cast<std::uint64_t>(block->labels.size(0));
    }
  }
  CalibrationPiece piece;
  piece.labels = torch::cat(labels);
  piece.log_prob = torch::cat(log_prob), piece.log_z = torch::cat(log_z);
  piece.found = without_near(store.search(torch::cat(keys), 2 * kNeighbours, kProbes, false),
      torch::cat(positions), places);
  return piece;
}

}  // namespace infer
