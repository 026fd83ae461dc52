#include "train/learner.h"

#include <ATen/autocast_mode.h>

#include <cmath>

#include "core/error.h"
#include "core/rng.h"
#include "nn/joint_loss.h"

namespace train {
namespace {

// Streams of the run's seed; batches.cpp has another.
constexpr std::uint64_t kDropoutStream = std::uint64_t{2} << 60,
                        kCoinStream = std::uint64_t{3} << 60;

// Products in bfloat16, weights and sums in float32, while it lives.
class Autocast {
 public:
  Autocast(bool on, torch::Device device) : on_(on), device_(device.type()) {
    if (!on_) return;
    was_on_ = at::autocast::is_autocast_enabled(device_);
    was_type_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, torch::kBFloat16);
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_on_);
    at::autocast::set_autocast_dtype(device_, was_type_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_, was_on_ = false;
  torch::DeviceType device_;
  torch::ScalarType was_type_ = torch::kFloat32;
};

nn::MemoryRule memory_of(const ObjectiveOptions& options) {
  auto rule = nn::MemoryRule::parse(options.memory);
  rule.gradient = options.memory_gradient == "on";
  rule.temperature = options.memory_temperature;
  rule.top_k = options.memory_top_k;
  return rule;
}

}  // namespace

Learner::Learner(std::shared_ptr<nn::Model> model, const Recipe& recipe, bool carries,
                 std::uint64_t seed, torch::Device device)
    : model_(std::move(model)),
      recipe_(recipe),
      carries_state_(carries && model_->architecture->carry() != nn::Carry::reencode),
      seed_(seed),
      device_(device),
      bfloat16_(recipe.precision == "bfloat16" || (recipe.precision == "auto" && device.is_cuda())),
      plain_steps_(share_of(recipe.objective.plain_warmup, recipe.steps)),
      memory_(memory_of(recipe.objective)),
      schedule_(recipe.schedule, recipe.optimiser.lr, recipe.steps) {
  carries_memory_ = carries && memory_.far && recipe.objective.memory_previous > 0;
  model_->to(device_);
  model_->train();
  optimiser_ = make_optimiser(recipe.optimiser, model_->named_weights());
}

nn::MemoryRule Learner::rule(std::int64_t step, std::int64_t micro_batch) const {
  if (step < plain_steps_) return {};
  nn::MemoryRule rule = memory_;
  if (rule.ext) {
    core::Rng coin(seed_, kCoinStream + static_cast<std::uint64_t>(micro_batch));
    rule.drop_own_segment = coin.uniform() < recipe_.objective.drop_local;
  }
  return rule;
}

nn::Entries Learner::carried() const {
  if (previous_.empty()) return {};
  std::vector<torch::Tensor> keys, labels;
  std::vector<nn::Place> places;
  for (const auto& entries : previous_) {
    keys.push_back(entries.keys);
    labels.push_back(entries.labels);
    places.push_back(entries.place);
  }
  return {torch::cat(keys), torch::cat(labels), nn::Place::concatenate(places)};
}

void Learner::remember(const torch::Tensor& g, const nn::Batch& batch) {
  previous_.push_back({g.detach().flatten(0, 1), batch.targets.flatten(), batch.place.flatten()});
  while (std::ssize(previous_) > recipe_.objective.memory_previous) previous_.pop_front();
}

// Adds the micro-batch's gradient, returns its nats.
torch::Tensor Learner::backward(std::int64_t step, const MicroBatch& micro) {
  torch::manual_seed(
      core::Rng(seed_, kDropoutStream + static_cast<std::uint64_t>(micro.index)).next());
  const nn::Batch batch = micro.batch.to(device_);
  // All rows of columns begin together.
  if (carries_memory_ && batch.fresh.any().item<bool>()) previous_.clear();
  nn::Hidden hidden;
  {
    const Autocast autocast(bfloat16_, device_);
    hidden = model_->architecture->forward(batch, carries_state_ ? &state_ : nullptr);
  }
  const auto f = hidden.f.to(torch::kFloat32), g = hidden.g.to(torch::kFloat32);
  const nn::Entries memory = carries_memory_ ? carried() : nn::Entries{};
  const double smoothing = recipe_.objective.label_smoothing;
  const auto loss =
      smoothing > 0 ? nn::smoothed_loss(f, batch, *model_->head, smoothing)
                    : nn::joint_loss(f, g, batch, *model_->head, rule(step, micro.index), memory);
  loss.backward();
  if (carries_memory_) remember(g, batch);
  if (carries_state_) {
    state_.detach();
    if (model_->architecture->carry() == nn::Carry::forget)
      model_->architecture->forget(state_, recipe_.batches.segment);
  }
  return loss.detach().to(torch::kFloat64);
}

Update Learner::update(std::int64_t step, const std::vector<MicroBatch>& micro_batches) {
  Update update;
  for (const auto& [name, weight] : optimiser_->weights())
    torch::Tensor(weight).mutable_grad().reset();
  for (const auto& micro : micro_batches) {
    const auto nats = backward(step, micro);
    update.nats = update.nats.defined() ? update.nats + nats : nats;
    update.tokens += micro.tokens;
  }
  const torch::NoGradGuard no_grad;
  // Where every target is unscored there is nothing to learn.
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(1, update.tokens));
  update.lr = schedule_.at(step);
  update.norm = gradient_norm(optimiser_->weights()).to(device_) * share;
  if (device_.is_cpu() && !std::isfinite(update.norm.item<double>()))
    core::fail(core::Code::bad_data,
               "update {}: the gradient is not finite; lower --lr, lengthen --warmup or set --clip",
               step + 1);
  auto scale =
      torch::full({}, share, torch::TensorOptions().dtype(torch::kFloat64).device(device_));
  if (recipe_.optimiser.clip > 0)
    scale = scale * (recipe_.optimiser.clip / (update.norm + 1e-6)).clamp_max(1);
  optimiser_->step(update.lr, scale);
  return update;
}

void Learner::put(model::Checkpoint& checkpoint) const {
  checkpoint.put_weights("model", *model_);
  for (const auto& [name, tensor] : optimiser_->tensors())
    checkpoint.tensors["optimiser." + name] = tensor;
  checkpoint.facts["optimiser"] = optimiser_->numbers();
  checkpoint.put_state("state", state_);
  checkpoint.facts["previous"] = previous_.size();
  for (std::size_t i = 0; i < previous_.size(); ++i) {
    const std::string name = "previous." + std::to_string(i) + ".";
    checkpoint.tensors[name + "keys"] = previous_[i].keys;
    checkpoint.tensors[name + "labels"] = previous_[i].labels;
    checkpoint.tensors[name + "run"] = previous_[i].place.run;
    checkpoint.tensors[name + "segment"] = previous_[i].place.segment;
    checkpoint.tensors[name + "position"] = previous_[i].place.position;
  }
}

void Learner::get(const model::Checkpoint& checkpoint) {
  checkpoint.get_weights("model", *model_);
  std::map<std::string, torch::Tensor> moments;
  for (const auto& [name, tensor] : optimiser_->tensors())
    moments[name] = checkpoint.tensor("optimiser." + name);
  optimiser_->restore(moments);
  optimiser_->set_numbers(
      core::get<std::vector<double>>(checkpoint.facts, "optimiser", checkpoint.origin));
  state_ = checkpoint.get_state("state", device_);
  previous_.clear();
  const auto n = core::get<std::size_t>(checkpoint.facts, "previous", checkpoint.origin);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = "previous." + std::to_string(i) + ".";
    previous_.push_back({checkpoint.tensor(name + "keys").to(device_),
                         checkpoint.tensor(name + "labels").to(device_),
                         {checkpoint.tensor(name + "run"), checkpoint.tensor(name + "segment"),
                          checkpoint.tensor(name + "position")}});
  }
}

}  // namespace train
