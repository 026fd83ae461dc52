#include "forecast/forecast_objective.h"

#include "forecast/forecast_model.h"

namespace forecast {
namespace {

constexpr float kClip = .5F;
constexpr double kBeta = 50;
constexpr std::int64_t kUpdates = 500;  // the paper's number of steps, the default of --steps

/// Options of train that have the same meaning here (core/options.h describes the form of the
/// list).
const std::set<std::string> kMeaningful = {"FILE", "arch", "heads", "beta", "loss", "segment",
    "batch", "accumulate", "steps", "optimiser", "lr", "beta1", "beta2", "epsilon", "momentum",
    "weight-decay", "decay", "clip", "schedule", "warmup", "warmup-init-lr", "min-lr", "period",
    "t-mult", "lr-shrink", "valid-every", "log-every", "average-checkpoints", "from", "valid",
    "valid-command", "valid-better", "checkpoint-every", "keep", "max-time", "plan",
    "bias-correction"};

/// Returns the documents with at least `window` rows.
std::vector<Series::Span> long_enough(const Series& series, std::int64_t window) {
  auto documents =
      core::kept(series.documents, [&](const auto& document) { return document.size() >= window; });
  if (documents.empty())
    core::bad_data("{}: no document has {} rows; give a smaller --segment", series.name, window);
  return documents;
}

/// Each number is the mean of two uniform numbers from +-1 / sqrt(width).
torch::Tensor first_maps(const Shape& shape, std::uint64_t seed) {
  core::Rng rng(seed, train::kFirstMapsStream);
  auto maps = torch::empty({3, shape.points, shape.points, 2});
  const double bound = 1 / std::sqrt(static_cast<double>(shape.width()));
  auto* const w = maps.data_ptr<float>();
  for (std::int64_t i = 0; i < maps.numel(); ++i)
    w[i] = static_cast<float>(bound * (rng.uniform() + rng.uniform() - 1));
  return maps;
}

Model first_model(const Job& job, std::int64_t points, std::string& fingerprint) {
  const Shape shape = {.points = points,
      .heads = job.model.shape.heads,
      .beta = static_cast<float>(job.beta > 0 ? job.beta : kBeta)};
  if (job.from.empty()) {
    if (shape.heads < 1 || points % shape.heads != 0)
      core::bad_usage("--heads: {} does not divide {} points", shape.heads, points);
    return {shape, first_maps(shape, job.seed)};
  }
  Model model = load(job.from);
  const auto expect = [&](const char* flag, bool asked, auto has, auto wanted) {
    if (asked && has != wanted)
      core::bad_usage("--{}: {} has {}, not {}; leave the option out", flag, job.from, has, wanted);
  };
  expect("heads", job.asked.contains("heads"), model.shape.heads, shape.heads);
  expect("beta", job.beta > 0, model.shape.beta, shape.beta);
  if (model.shape.points != points)
    core::bad_data(
        "{}: forecasts {} points, but the data have {}", job.from, model.shape.points, points);
  fingerprint = model::tensors_digest(model.named_weights()).hex();
  return model;
}

/// Returns the sum over the rows of a window of their mean error. Adds its gradient to `gradient`
/// unless that is null.
double window_loss(MemoryUnit& unit, const Shape& shape, const float* x, std::int64_t steps,
    const float* weights, float* gradient) {
  const auto width = static_cast<std::size_t>(shape.width());
  std::vector<float> y(static_cast<std::size_t>(steps) * width);
  unit.forward(x, steps, weights, y.data());
  const std::size_t scored = (static_cast<std::size_t>(steps) - 1) * width;
  double loss = 0;
  for (std::size_t i = 0; i < scored; ++i) {
    const float error = y[i] - x[i + width], clipped = std::clamp(error, -kClip, kClip);
    loss += static_cast<double>(clipped) * clipped;
    y[i] = error == clipped ? 2 * error / static_cast<float>(width) : 0;
  }
  std::fill(y.begin() + static_cast<std::ptrdiff_t>(scored), y.end(), 0.0F);
  if (gradient != nullptr) unit.backward(x, steps, weights, y.data(), gradient);
  return loss / static_cast<double>(width);
}

class VectorObjective : public train::Objective {
 public:
  VectorObjective(Settings settings, std::uint64_t seed, Model model, Series data, Series valid)
      : Objective(std::move(settings)), recipe_(this->settings().recipe), seed_(seed),
        model_(std::move(model)), data_(std::move(data)),
        documents_(long_enough(data_, recipe_.batches.segment)), valid_(std::move(valid)),
        schedule_(recipe_.schedule, recipe_.optimiser.lr, recipe_.steps),
        gradient_(torch::zeros_like(model_.maps)),
        optimiser_(train::make_optimiser(recipe_.optimiser, model_.named_weights())) {
    std::int64_t map = 0;
    for (const auto& [name, weight] : optimiser_->weights())
      torch::Tensor(weight).mutable_grad() = gradient_[map++];
  }

  train::Update update(std::int64_t step, std::int64_t data) override {
    const auto windows = draw(data);
    const auto n = static_cast<std::int64_t>(windows.size()), weights = model_.maps.numel();
    // Each window has its own gradient, so that the sum does not depend on the number of threads.
    const auto gradients = torch::zeros({n, weights});
    auto* const g = gradients.data_ptr<float>();
    train::Update update;
    update.loss = torch::tensor(loss_of(windows, g), torch::kFloat64);
    auto* const sum = gradient_.data_ptr<float>();
    for (std::int64_t i = 0; i < weights; ++i) {
      double all = 0;
      for (std::int64_t window = 0; window < n; ++window) all += g[window * weights + i];
      sum[i] = static_cast<float>(all);
    }
    update.scored = n * (recipe_.batches.segment - 1);
    update.lr = schedule_.at(step);
    train::descend(update, *optimiser_, recipe_.optimiser.clip, step);
    return update;
  }

  train::NamedWeights weights() const override { return model_.named_weights(); }

  Valid validate() override {
    const auto window = recipe_.batches.segment;
    std::vector<const float*> windows;
    for (const auto& [begin, end] : long_enough(valid_, window))
      for (auto row = begin; row + window <= end; row += window) windows.push_back(valid_.row(row));
    return {loss_of(windows, nullptr) / static_cast<double>(std::ssize(windows) * (window - 1))};
  }

  void put(model::Checkpoint& checkpoint) const override {
    for (const auto& [name, weight] : weights()) checkpoint.tensors["model." + name] = weight;
    train::put_optimiser(checkpoint, *optimiser_);
  }

  void get(const model::Checkpoint& checkpoint) override {
    for (const auto& [name, weight] : weights()) {
      const auto& kept = checkpoint.tensor("model." + name);
      if (kept.sizes() != weight.sizes())
        core::bad_data("{}: {} has the wrong shape", checkpoint.origin, name);
      torch::Tensor(weight).copy_(kept);
    }
    train::get_optimiser(checkpoint, *optimiser_);
  }

  void save(const std::string& folder, std::optional<double> /*joint_temperature*/) const override {
    forecast::save(folder, model_, settings().config);
  }

 private:
  /// Returns the windows of step `data`. Micro-batch i is a function of (seed, i).
  std::vector<const float*> draw(std::int64_t data) const {
    const auto& batches = recipe_.batches;
    std::vector<const float*> windows;
    for (std::int64_t micro = data * batches.accumulate; micro < (data + 1) * batches.accumulate;
         ++micro) {
      core::Rng rng(seed_, train::kWindowsStream + static_cast<std::uint64_t>(micro));
      for (std::int64_t i = 0; i < batches.batch; ++i) {
        const auto& document = documents_[rng.below(documents_.size())];
        const auto starts = static_cast<std::uint64_t>(document.size() - batches.segment + 1);
        windows.push_back(data_.row(document.begin + static_cast<std::int64_t>(rng.below(starts))));
      }
    }
    return windows;
  }

  /// Returns the sum over the windows. Adds window i's gradient to row i of `gradients` unless that
  /// is null.
  double loss_of(const std::vector<const float*>& windows, float* gradients) const {
    const auto* const weights = model_.maps.const_data_ptr<float>();
    const auto steps = recipe_.batches.segment;
    std::vector<double> losses(windows.size());
    at::parallel_for(0, std::ssize(windows), 1, [&](std::int64_t begin, std::int64_t end) {
      MemoryUnit unit(model_.shape, steps);
      for (auto i = begin; i < end; ++i)
        losses[static_cast<std::size_t>(i)] =
            window_loss(unit, model_.shape, windows[static_cast<std::size_t>(i)], steps, weights,
                gradients == nullptr ? nullptr : gradients + i * model_.maps.numel());
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

  const train::Recipe& recipe_;
  std::uint64_t seed_;
  Model model_;
  Series data_;
  std::vector<Series::Span> documents_;
  Series valid_;
  train::Schedule schedule_;
  torch::Tensor gradient_;  // same shape as the maps, whose gradients are its parts
  std::unique_ptr<train::Optimiser> optimiser_;
};

/// Returns the facts that determine the bytes of the model.
core::OrderedJson facts_of(const Job& job, const Shape& shape, const Series& data,
    const Series& valid, const std::string& from) {
  core::OrderedJson facts{{"data", data.fingerprint}, {"valid", valid.fingerprint}, {"from", from},
      {"seed", job.seed}, {"heads", shape.heads}, {"beta", shape.beta}};
  auto recipe = job.recipe;
  const auto values = core::to_json(recipe);
  const auto fields = core::list_fields(recipe);
  for (const auto& field : fields.all())
    if (kMeaningful.count(field.name)) facts[field.key()] = values[field.key()];
  return facts;
}

}  // namespace

void LossOptions::fields(core::FieldList& f) {
  f("loss", loss,
      "softmax: cross-entropy of tokens; clipped-mse: for a mosaic that forecasts vectors",
      {"softmax", "clipped-mse"});
  f("beta", beta, "clipped-mse: sharpness of the kernel; auto: 50, or that of --from")
      .auto_or_above(0, 1e6);
}

void LossOptions::check(const std::string& arch) const {
  if (of_vectors() && arch != "mosaic")
    core::bad_usage("--loss clipped-mse: requires --arch mosaic");
  if (!of_vectors() && beta > 0) core::bad_usage("--beta: requires --loss clipped-mse");
}

std::unique_ptr<train::Objective> prepare(Job job) {
  auto& recipe = job.recipe;
  train::resolve_batches(recipe);
  if (recipe.batches.segment == 0) recipe.batches.segment = train::kSegment;
  if (recipe.batches.segment < 2) core::bad_usage("--segment: takes at least 2 rows");
  if (recipe.steps == 0) recipe.steps = kUpdates;
  train::resolve_steps(recipe, 1);
  auto data = read_series(job.shards);
  Series valid;
  if (!job.valid.empty()) {
    valid = read_series({job.valid});
    if (valid.width != data.width)
      core::bad_data("{} (rows of {} numbers) does not match {} (rows of {})", valid.name,
          valid.width, data.name, data.width);
    long_enough(valid, recipe.batches.segment);
  }
  std::string from;
  auto model = first_model(job, data.width / 2, from);
  const auto& batches = recipe.batches;
  const double windows =
      static_cast<double>(recipe.steps) * static_cast<double>(batches.batch * batches.accumulate);
  train::Objective::Settings settings = {.recipe = recipe,
      .validation = job.validation,
      .config = make_config(model.shape, facts_of(job, model.shape, data, valid, from)),
      .counted = "rows",
      .nats = false,
      .has_valid = !job.valid.empty(),
      .scored = windows * static_cast<double>(batches.segment - 1)};
  return std::make_unique<VectorObjective>(
      std::move(settings), job.seed, std::move(model), std::move(data), std::move(valid));
}

void refuse_meaningless(const core::FieldList& fields, const core::FieldList& defaults) {
  for (std::size_t i = 0; i < fields.all().size(); ++i) {
    const auto& field = fields.all()[i];
    const auto value = core::to_strings(field);
    if (kMeaningful.count(field.name) || value == core::to_strings(defaults.all()[i])) continue;
    // Vectors are trained on the CPU in float32, whatever the machine has.
    const std::vector<std::string> only = {field.name == "device"      ? "cpu"
                                           : field.name == "precision" ? "float32"
                                                                       : ""};
    if (value != only)
      core::bad_usage("--{}: cannot be combined with --loss clipped-mse", field.name);
  }
}

}  // namespace forecast
