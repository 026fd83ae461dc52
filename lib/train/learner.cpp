#include "train/learner.h"

#include "nn/base/runtime.h"

namespace train {
namespace {

torch::Tensor ranks(const torch::Tensor& ids) {
  return std::get<1>(at::_unique(ids, /*sorted=*/true, /*return_inverse=*/true));
}

// Numbers ids 0, 1, ... in the order of their first appearance.
torch::Tensor by_appearance(const torch::Tensor& ids) {
  const auto number = ranks(ids);
  const auto first = torch::full({ids.numel()}, INT64_MAX, torch::kInt64)
                         .scatter_reduce(0, number.flatten(), torch::arange(ids.numel()), "amin");
  return first.argsort().argsort().index({number});
}

// Renumbers the places, so that they do not depend on the batch's position in the data. Runs are
// numbered in order and no run sees another. A run's segments are numbered in order. Positions
// count from the first of the run.
nn::TokenPositions own_numbers(const nn::TokenPositions& place) {
  const auto run = by_appearance(place.run);
  const auto first = torch::full({run.numel()}, INT64_MAX, torch::kInt64)
                         .scatter_reduce(0, run.flatten(), place.position.flatten(), "amin");
  const auto segment = ranks(run * run.numel() + ranks(place.segment));
  return {run, segment, place.position - first.index({run})};
}

bool same(const nn::TokenPositions& a, const nn::TokenPositions& b) {
  return torch::equal(a.run, b.run) && torch::equal(a.segment, b.segment) &&
         torch::equal(a.position, b.position);
}

bool like(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

torch::Tensor& gradient_of(const torch::Tensor& weight) {
  return torch::Tensor(weight).mutable_grad();
}

nn::MemoryRule memory_of(const ObjectiveOptions& options) {
  auto rule = nn::MemoryRule::parse(options.memory);
  rule.gradient = options.memory_gradient != "off";
  rule.temperature = options.memory_temperature;
  rule.top_k = options.memory_top_k;
  return rule;
}

void expect_equal_shares(const BatchOptions& batches, bool carries, const ranks::Team& team) {
  const std::int64_t shares = team.teams();
  const std::string who = fmt::format(
      "{} {}", shares, team.size() == 1 ? "ranks" : fmt::format("teams of {} ranks", team.size()));
  if (carries && batches.batch_shards % shares != 0)
    core::bad_usage(
        "--batch-shards: {} batch shards cannot be divided equally among {}; give a multiple of {}",
        batches.batch_shards, who, shares);
  if (!carries && batches.accumulate % shares != 0)
    core::bad_usage(
        "--accumulate: {} micro-batches per step cannot be divided equally among {}; give a "
        "multiple of {}",
        batches.accumulate, who, shares);
}

// Returns rows [begin, end), padded like the whole batch.
MicroBatch rows_of_batch(const MicroBatch& micro, std::int64_t begin, std::int64_t end) {
  const auto rows = [&](const torch::Tensor& tensor) {
    return tensor.defined() ? tensor.slice(0, begin, end).contiguous() : tensor;
  };
  MicroBatch part;
  part.index = micro.index;
  part.batch = {rows(micro.batch.inputs), rows(micro.batch.targets), rows(micro.batch.weight),
      {rows(micro.batch.place.run), rows(micro.batch.place.segment),
          rows(micro.batch.place.position)},
      rows(micro.batch.fresh), rows(micro.batch.source), rows(micro.batch.host_targets),
      rows(micro.batch.host_weight), rows(micro.batch.host_source)};
  part.teachers = {rows(micro.teachers.words), rows(micro.teachers.shares)};
  const auto& known = part.batch.host_weight;
  const auto& weight = known.defined() ? known : part.batch.weight;
  part.tokens = weight.sum(torch::kFloat64).item<std::int64_t>();
  return part;
}

void recompute_blocks(nn::Model& model) {
  auto* const blocks = dynamic_cast<nn::RecomputingBlocks*>(model.architecture.get());
  if (blocks == nullptr)
    core::bad_usage(
        "--recompute: requires arch transformer or encoder-decoder, not {}", model.options.arch);
  blocks->recompute_blocks(true);
}

nn::LendingBlocks& lending_blocks(nn::Model& model, bool part) {
  auto* const blocks = dynamic_cast<nn::LendingBlocks*>(model.architecture.get());
  if (blocks == nullptr)
    core::bad_usage(
        "--shard: weights requires arch transformer, not {}; use gradients", model.options.arch);
  if (part) core::bad_usage("--shard: weights cannot be combined with --lora; use gradients");
  return *blocks;
}

}  // namespace

bool FixedMicroBatch::fits(const nn::ModelOptions& options) {
  return options.arch == "transformer" && options.vocabulary.cutoffs.empty() &&
         options.plain_layers();
}

bool FixedMicroBatch::takes(const nn::Batch& batch) {
  if (!batch.dense() || batch.source.defined()) return false;
  const auto place = own_numbers(batch.place);
  if (!batch_.inputs.defined()) {
    batch_ = batch;
    batch_.place = place;
    for (auto* each : {&batch_.inputs, &batch_.targets, &batch_.weight})
      *each = torch::empty_like(*each);
    batch_.host_targets = batch_.host_weight = torch::Tensor();
  }
  return like(batch.inputs, batch_.inputs) && like(batch.weight, batch_.weight) &&
         same(place, batch_.place);
}

torch::Tensor FixedMicroBatch::run(const nn::Batch& batch, const Work& work) {
  batch_.inputs.copy_(batch.inputs);
  batch_.targets.copy_(batch.targets);
  batch_.weight.copy_(batch.weight);
  const auto before =
      core::mapped(weights_, [](const auto& named) { return gradient_of(named.second); });
  sequence_.run([&] {
    for (const auto& [name, weight] : weights_) gradient_of(weight).reset();
    result_ = work(batch_);
    gradients_.clear();
    for (const auto& [name, weight] : weights_) gradients_.push_back(gradient_of(weight));
  });
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    auto& gradient = gradient_of(weights_[i].second);
    gradient = before[i];
    if (!gradients_[i].defined()) continue;
    gradient = gradient.defined() ? gradient.add_(gradients_[i]) : gradients_[i].clone();
  }
  return result_.clone();
}

Learner::Learner(std::shared_ptr<nn::Model> model, const Recipe& recipe, bool carries,
    std::uint64_t seed, torch::Device device, std::shared_ptr<ranks::Group> group, bool record,
    std::shared_ptr<TrainedPart> part, ThriftOptions thrift)
    : model_(std::move(model)), recipe_(recipe), group_(std::move(group)),
      team_(group_, recipe.objective.memory_ranks),
      sharded_(group_->is_alone() ? Sharded::none : thrift.sharded()), carries_(carries),
      carries_state_(carries && model_->architecture->carry() != nn::Carry::reencode), seed_(seed),
      device_(device),
      bfloat16_(recipe.precision == "bfloat16" || (recipe.precision == "auto" && device.is_cuda())),
      loss_work_{nn::loss_block_bytes(nn::device_memory(device)), bfloat16_ && !device.is_cpu()},
      further_from_(recipe.further_from),
      plain_steps_(further_from_ > 0 ? 0 : share_of(recipe.objective.plain_warmup, recipe.steps)),
      memory_(memory_of(recipe.objective)),
      schedule_(recipe.schedule, recipe.optimiser.lr, recipe.steps - further_from_),
      part_(std::move(part)) {
  expect_equal_shares(recipe.batches, carries, team_);
  if (!device.is_cpu()) nn::set_deterministic(recipe.deterministic);
  const std::int64_t own = carries ? recipe.batches.batch_shards / group_->size() : 1;
  first_batch_shard_ = carries ? group_->rank() * own : 0;
  const nn::SegmentMemory previous(carries && memory_.far ? recipe.objective.memory_previous : 0);
  batch_shards_.assign(static_cast<std::size_t>(own), BatchShard{{}, previous});
  model_->to(device_);
  model_->train();
  if (thrift.recompute) recompute_blocks(*model_);
  if (part_) part_->to(device_);
  const auto weights = part_ ? part_->weights() : model_->named_weights();
  for (const auto& [name, weight] : weights)
    if (sharded_ != Sharded::none && is_memory_table(name))
      core::bad_usage(
          "--shard: cannot be combined with --memory-layer, whose tables have sparse "
          "gradients");
  if (sharded_ != Sharded::none)
    shards_ = std::make_unique<Shards>(weights, recipe.optimiser, group_);
  if (sharded_ == Sharded::weights) {
    auto& blocks = lending_blocks(*model_, part_ != nullptr);
    lent_ = std::make_shared<LentWeights>(*shards_, blocks.block_weights());
    blocks.lend_weights(lent_);
  }
  optimiser_ = make_optimiser(recipe.optimiser, shards_ ? shards_->own() : weights, weights);
  const bool alike = !carries && team_.size() == 1 && !memory_.ext;
  if (record && alike && sharded_ < Sharded::gradients && !part_ && !thrift.recompute &&
      nn::graph_calls(device_) != nullptr && FixedMicroBatch::fits(model_->options))
    fixed_ = std::make_unique<FixedMicroBatch>(weights, device_);
  if (group_->connects(device_) && sharded_ < Sharded::gradients && !part_)
    buckets_ = std::make_unique<GradientBuckets>(summed_weights(), *group_, sum_of(recipe));
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

nn::Entries Learner::entries(const BatchShard& batch_shard, const torch::Tensor& g,
    const nn::Batch& batch, const MicroBatch& micro) const {
  if (team_.size() > 1) {
    const std::int64_t rows = micro.batch.rows(), steps = micro.batch.steps(),
                       own = team_.end(rows) - team_.begin(rows);
    const auto keys = g.flatten(0, 1).narrow(0, 0, own * steps);
    const auto gradient = recipe_.objective.memory_gradient == "own" ? ranks::KeyGradient::own
                                                                     : ranks::KeyGradient::all;
    return {team_.gather(memory_.gradient ? keys : keys.detach(), rows, steps, gradient),
        nn::upload(micro.batch.targets.flatten(), device_), micro.batch.place.flatten()};
  }
  std::vector<nn::Entries> parts = batch_shard.previous.view();
  parts.insert(parts.begin(), nn::Entries::of(g, batch));
  return nn::Entries::concatenate(parts);
}

MicroBatch Learner::own_rows(const MicroBatch& micro, std::int64_t batch_shard) const {
  const std::int64_t rows = micro.batch.rows(), batch_shards = recipe_.batches.batch_shards;
  if (batch_shards > 1) {
    const std::int64_t each = rows / batch_shards,
                       begin = (first_batch_shard_ + batch_shard) * each;
    return rows_of_batch(micro, begin, begin + each);
  }
  if (team_.size() == 1) return micro;
  const std::int64_t begin = team_.begin(rows), end = team_.end(rows);
  if (begin < end) return rows_of_batch(micro, begin, end);
  // There are fewer rows than members: this member computes a row of weight 0.
  MicroBatch idle = rows_of_batch(micro, 0, 1);
  idle.batch.weight = torch::zeros_like(idle.batch.weight);
  idle.tokens = 0;
  return idle;
}

// Adds the gradient of the rows and returns their nats.
torch::Tensor Learner::backward(
    std::int64_t step, const MicroBatch& micro, const MicroBatch& rows, std::int64_t batch_shard) {
  const std::int64_t drawn =
      carries_ ? micro.index * recipe_.batches.batch_shards + first_batch_shard_ + batch_shard
               : micro.index * team_.size() + team_.member();
  torch::manual_seed(core::Rng(seed_, kDropoutStream + static_cast<std::uint64_t>(drawn)).next());
  BatchShard& own = batch_shards_[static_cast<std::size_t>(batch_shard)];
  const nn::Batch batch = rows.batch.to(device_);
  // All rows of columns begin together.
  if (own.previous.size() > 0 && batch.fresh.any().item<bool>()) own.previous.clear();
  torch::Tensor g;
  const auto work = [&](const nn::Batch& of) {
    return differentiate(of, micro, rows, rule(step, micro.index), own, &g);
  };
  if (is_fixed(step, rows, batch)) return fixed_->run(batch, work);
  auto loss = work(batch);
  own.previous.append(g, batch);
  if (carries_state_) {
    own.state.detach();
    if (model_->architecture->carry() == nn::Carry::forget)
      model_->architecture->forget(own.state, recipe_.batches.segment);
  }
  return loss;
}

// Whether the batch can use the recorded sequence. The memory's rule changes at the end of the
// warm-up.
bool Learner::is_fixed(std::int64_t step, const MicroBatch& rows, const nn::Batch& batch) {
  return fixed_ && !rows.teachers.any() && (step >= plain_steps_ || !memory_.any()) &&
         fixed_->takes(batch);
}

torch::Tensor Learner::differentiate(const nn::Batch& batch, const MicroBatch& micro,
    const MicroBatch& rows, const nn::MemoryRule& rule, BatchShard& batch_shard, torch::Tensor* g) {
  const nn::RoundedProducts rounded(bfloat16_ && device_.is_cpu());
  nn::Hidden hidden;
  {
    const nn::Autocast autocast(bfloat16_ && !device_.is_cpu(), device_);
    const auto pass = [&] {
      hidden = model_->architecture->forward(batch, carries_state_ ? &batch_shard.state : nullptr);
    };
    if (part_) part_->forward(pass);
    else pass();
  }
  const auto f = hidden.output.to(torch::kFloat32);
  *g = hidden.key.to(torch::kFloat32);
  const double smoothing = recipe_.objective.label_smoothing;
  const auto loss =
      rows.teachers.any() ? nn::target_loss(f, batch, *model_->head, rows.teachers,
                                recipe_.objective.targets_weight, loss_work_)
      : smoothing > 0
          ? nn::smoothed_loss(f, batch, *model_->head, smoothing, loss_work_)
          : nn::joint_loss(f, *g, batch, *model_->head, rule,
                rule.any() ? entries(batch_shard, *g, batch, micro) : nn::Entries{}, loss_work_);
  loss.backward();
  return loss.detach().to(torch::kFloat64);
}

MicroBatchShare Learner::share() const {
  const std::int64_t of = recipe_.batches.accumulate;
  if (carries_) return {0, of, of};
  const std::int64_t count = of / team_.teams();
  if (sharded_ < Sharded::gradients) return {team_.number() * count, count, of};
  const std::int64_t run = GradientShards::block(count, sum_of(recipe_));
  return {team_.number() * run, count, of, run, team_.teams() * run};
}

const NamedWeights& Learner::summed_weights() const {
  return shards_ ? shards_->weights() : optimiser_->weights();
}

template <class Sum>
Update Learner::run(std::int64_t step, const std::vector<MicroBatch>& micro_batches, Sum&& sum) {
  // What is replayed runs no hooks; ranks that share a micro-batch transfer in its backward pass.
  [[maybe_unused]] const bool overlap = !fixed_ && team_.size() == 1;
  for (std::int64_t batch_shard = 0; batch_shard < std::ssize(batch_shards_); ++batch_shard) {
    for (const auto& micro : micro_batches) {
      const auto own = own_rows(micro, batch_shard);
      if constexpr (std::is_same_v<std::decay_t<Sum>, GradientSum>) {
        if (overlap) sum.begin_leaf();
      } else if (lent_) {
        lent_->sum_into(&sum);
      }
      const auto nats = backward(step, micro, own, batch_shard);
      if (lent_) lent_->take_all_back();
      if (part_) part_->take_gradients();
      sum.add(nats, own.tokens);
    }
  }
  if (lent_) lent_->sum_into(nullptr);
  Update update;
  sum.finish(update);
  return update;
}

Update Learner::update(std::int64_t step, const std::vector<MicroBatch>& micro_batches) {
  const auto leaves = std::ssize(batch_shards_) * std::ssize(micro_batches);
  const auto how = sum_of(recipe_);
  Update update;
  torch::Tensor norm;
  if (sharded_ < Sharded::gradients) {
    update = run(
        step, micro_batches, GradientSum(summed_weights(), leaves, *group_, how, buckets_.get()));
    if (shards_) shards_->take_gradients();
  } else {
    const bool early = team_.size() == 1 && !part_ && !lent_;  // else others talk
    update = run(step, micro_batches,
        GradientShards(*shards_, leaves, *group_, how,
            carries_ ? Neighbours::own : Neighbours::processes, early));
  }
  if (shards_) norm = shards_->norm();
  update.lr = schedule_.at(step - further_from_);
  descend(update, *optimiser_, recipe_.optimiser.clip, step, norm);
  if (shards_) {
    shards_->drop_gradients();
    shards_->spread();
  }
  if (part_) part_->apply();
  return update;
}

// Calls work(i, name, weight) for weight i of the model if this process has all its numbers.
template <class Work> void Learner::each_weight_here(const Work& work) const {
  const auto weights = model_->named_weights();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!lent_ || !shards_->is_away(i)) work(i, weights[i].first, weights[i].second);
}

void Learner::take_weights(const NamedWeights& from) {
  const torch::NoGradGuard no_grad;
  each_weight_here([&](std::size_t i, const std::string& /*name*/, torch::Tensor weight) {
    weight.copy_(from[i].second);
  });
  if (lent_) shards_->take_away(from);
}

void Learner::gather_weights() {
  if (lent_) lent_->fetch_all();
}

void Learner::release_weights() {
  if (lent_) lent_->drop_all();
}

torch::Tensor Learner::gather(const std::function<torch::Tensor(const BatchShard&)>& of) const {
  const auto own = core::mapped(batch_shards_, of);
  if (own.size() == 1 && group_->is_alone()) return own[0];
  return torch::cat(group_->gather(torch::cat(own).to(torch::kCPU)));
}

torch::Tensor Learner::rows_of(const torch::Tensor& all, std::size_t own) const {
  const std::int64_t each = all.size(0) / recipe_.batches.batch_shards;
  const auto batch_shard = first_batch_shard_ + static_cast<std::int64_t>(own);
  return carries_ ? all.narrow(0, batch_shard * each, each).clone() : all;
}

void Learner::put(model::Checkpoint& checkpoint) const {
  const bool whole = !part_ || part_->in_model();
  if (whole && group_->first())
    each_weight_here([&](std::size_t /*i*/, const std::string& name, const torch::Tensor& weight) {
      checkpoint.tensors["model." + name] = weight.detach();
    });
  if (!whole && group_->first())
    for (const auto& [name, values] : part_->weights()) checkpoint.tensors["lora." + name] = values;
  put_optimiser(checkpoint, *optimiser_);
  if (shards_) shards_->put(checkpoint, *optimiser_);
  const auto put = [&](const char* part, const auto& of) {
    const nn::State& first = of(batch_shards_[0]);
    nn::State state;
    state.counts = first.counts;
    for (const auto& entry : first.tensors) {
      const auto& name = entry.first;
      state.tensors[name] =
          gather([&](const BatchShard& batch_shard) { return of(batch_shard).tensors.at(name); });
    }
    if (group_->first()) checkpoint.put_state(part, state);
  };
  put("state", [](const BatchShard& batch_shard) -> const nn::State& { return batch_shard.state; });
  put("memory", [](const BatchShard& batch_shard) -> const nn::State& {
    return batch_shard.previous.state();
  });
}

void Learner::get(const model::Checkpoint& checkpoint) {
  if (part_ && !part_->in_model()) {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, values] : part_->weights())
      torch::Tensor(values).copy_(checkpoint.tensor("lora." + name));
    part_->apply();
  } else {
    each_weight_here([&](std::size_t /*i*/, const std::string& name, const torch::Tensor& weight) {
      checkpoint.get_weight("model." + name, weight);
    });
  }
  if (shards_) shards_->get(checkpoint, *optimiser_);
  else get_optimiser(checkpoint, *optimiser_);
  const auto get = [&](const char* part, const auto& of) {
    const auto state = checkpoint.get_state(part, device_);
    for (std::size_t own = 0; own < batch_shards_.size(); ++own) {
      nn::State& into = of(batch_shards_[own]);
      into = {};
      into.counts = state.counts;
      for (const auto& [name, tensor] : state.tensors) into.tensors[name] = rows_of(tensor, own);
    }
  };
  get("state", [](BatchShard& batch_shard) -> nn::State& { return batch_shard.state; });
  get("memory", [](BatchShard& batch_shard) -> nn::State& { return batch_shard.previous.state(); });
}

}  // namespace train
