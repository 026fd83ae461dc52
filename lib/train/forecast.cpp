#include "train/forecast.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io.h"
#include "core/rng.h"
#include "model/forecast_model.h"
#include "nn/torch.h"
#include "shard/dataset.h"
#include "train/log.h"
#include "train/schedule.h"

namespace train {
namespace {

constexpr float kClip = .5F;
constexpr std::int64_t kMostPoints = 32;

/// The data as rows, and where windows of a length may begin.
struct Series {
  std::vector<float> rows;
  std::int64_t width = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> starts;  // first, how many, of each document
};

Series read_series(const std::vector<std::string>& shards, std::int64_t segment) {
  const shard::Dataset data(shards);
  shard::expect_kind(data.header(), {shard::Kind::vectors}, data.name());
  Series series;
  series.width = data.header().width;
  if (series.width % 2 != 0 || series.width > 2 * kMostPoints)
    core::fail(core::Code::bad_data, "{}: rows of {} numbers are no points of the plane",
               data.name(), series.width);
  series.rows.resize(data.size());
  data.read(0, std::span<float>(series.rows));
  std::int64_t begin = 0;
  for (const auto element : data.documents().end) {
    const auto end = static_cast<std::int64_t>(element) / series.width;
    if (end - begin >= segment) series.starts.emplace_back(begin, end - begin - segment + 1);
    begin = end;
  }
  if (series.starts.empty())
    core::fail(core::Code::bad_data, "{}: no document of {} rows; give a smaller --segment",
               data.name(), segment);
  return series;
}

/// Each number is the mean of two that are uniform in +-1 / sqrt(width).
std::vector<float> first_weights(const nn::ForecastShape& shape, std::uint64_t seed) {
  core::Rng rng(seed, 0);
  std::vector<float> weights(static_cast<std::size_t>(shape.parameters()));
  const double bound = 1 / std::sqrt(static_cast<double>(shape.width()));
  for (auto& w : weights) w = static_cast<float>(bound * (rng.uniform() + rng.uniform() - 1));
  return weights;
}

/// Loss of one window; adds to its gradient.
double window_loss(nn::ForecastUnit& unit, const nn::ForecastShape& shape, const float* x,
                   std::int64_t steps, const std::vector<float>& weights, float* d_weights) {
  const auto width = static_cast<std::size_t>(shape.width());
  std::vector<float> y(static_cast<std::size_t>(steps) * width);
  unit.forward(x, steps, weights.data(), y.data());
  const std::size_t scored = (static_cast<std::size_t>(steps) - 1) * width;
  double loss = 0;
  for (std::size_t i = 0; i < scored; ++i) {
    const float error = y[i] - x[i + width], clipped = std::clamp(error, -kClip, kClip);
    loss += static_cast<double>(clipped) * clipped;
    y[i] = error == clipped ? 2 * error / static_cast<float>(scored) : 0;
  }
  std::fill(y.begin() + static_cast<std::ptrdiff_t>(scored), y.end(), 0.0F);
  unit.backward(x, steps, weights.data(), y.data(), d_weights);
  return loss / static_cast<double>(scored);
}

/// AdamW (Loshchilov & Hutter 2019).
class Adam {
 public:
  Adam(const OptimiserOptions& options, std::size_t n) : options_(options), m_(n), v_(n) {}
  void step(std::vector<float>& weights, const std::vector<double>& gradient, double lr) {
    ++t_;
    const double first = 1 - std::pow(options_.beta1, t_),
                 second = 1 - std::pow(options_.beta2, t_);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      m_[i] += (1 - options_.beta1) * (gradient[i] - m_[i]);
      v_[i] += (1 - options_.beta2) * (gradient[i] * gradient[i] - v_[i]);
      const double move = m_[i] / first / (std::sqrt(v_[i] / second) + options_.epsilon);
      weights[i] -= static_cast<float>(lr * (move + options_.weight_decay * weights[i]));
    }
  }

 private:
  OptimiserOptions options_;
  std::vector<double> m_, v_;
  double t_ = 0;
};

core::OrderedJson facts(const ForecastJob& job) {
  core::OrderedJson training;
  training["data"] = shard::Dataset(job.shards).fingerprint().hex();
  training["seed"] = job.seed;
  const auto recipe = core::to_json(job.recipe);
  for (const auto& [key, value] : recipe.items()) training[key] = value;
  return training;
}

}  // namespace

bool train_forecast(const RunFolder& folder, ForecastJob job,
                    const std::function<void(std::int64_t step, double loss)>& progress) {
  resolve_batches(job.recipe);
  resolve_steps(job.recipe, job.recipe.steps > 0 ? 1 : 50);
  const auto& recipe = job.recipe;
  const auto steps = recipe.batches.segment, batch = recipe.batches.batch;
  const auto series = read_series(job.shards, steps);
  job.shape.points = series.width / 2;
  if (job.shape.heads < 1 || job.shape.points % job.shape.heads != 0)
    core::fail(core::Code::usage, "--heads: {} does not divide {} points", job.shape.heads,
               job.shape.points);
  const auto config = model::forecast_config(job.shape, facts(job));
  if (folder.finished()) {
    if (core::parse_json(core::read_text(folder.file("config.json")), folder.path()) ==
        core::parse_json(core::dump(config), folder.path()))
      return false;
    core::fail(core::Code::usage, "{}: holds a model of another configuration or other data",
               folder.path());
  }

  auto weights = first_weights(job.shape, job.seed);
  Adam adam(recipe.optimiser, weights.size());
  const Schedule schedule(recipe.schedule, recipe.optimiser.lr, recipe.steps);
  Log metrics(folder.file("metrics.jsonl"), 0);
  for (std::int64_t step = 0; step < recipe.steps; ++step) {
    core::Rng rng(job.seed, static_cast<std::uint64_t>(step) + 1);
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto& [first, count] = series.starts[rng.below(series.starts.size())];
      starts.push_back(first +
                       static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(count))));
    }
    // A gradient of its own for each window: the sum does not depend on the threads.
    std::vector<float> gradients(static_cast<std::size_t>(batch) * weights.size(), 0.0F);
    std::vector<double> losses(static_cast<std::size_t>(batch));
    at::parallel_for(0, batch, 1, [&](std::int64_t begin, std::int64_t end) {
      nn::ForecastUnit unit(job.shape, steps);
      for (std::int64_t i = begin; i < end; ++i)
        losses[static_cast<std::size_t>(i)] = window_loss(
            unit, job.shape,
            series.rows.data() + starts[static_cast<std::size_t>(i)] * series.width, steps, weights,
            gradients.data() + static_cast<std::size_t>(i) * weights.size());
    });
    std::vector<double> gradient(weights.size(), 0.0);
    double loss = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      loss += losses[i] / static_cast<double>(batch);
      for (std::size_t j = 0; j < weights.size(); ++j)
        gradient[j] += gradients[i * weights.size() + j] / static_cast<double>(batch);
    }
    const double lr = schedule.at(step);
    adam.step(weights, gradient, lr);
    if ((step + 1) % recipe.log_every == 0 || step + 1 == recipe.steps)
      metrics.write({{"step", step + 1}, {"loss", rounded(loss)}, {"lr", rounded(lr)}});
    progress(step + 1, loss);
  }
  metrics.sync();
  model::save_forecast(folder.path(), {job.shape, weights}, config);
  return true;
}

}  // namespace train
