#include "train/token_objective.h"

#include "train/validation.h"

namespace train {
namespace {

bool learns_memory(const Run& run) {
  return nn::MemoryRule::parse(run.recipe.objective.memory).any();
}

Objective::Settings settings_of(const Run& run) {
  const double micro_batches =
      static_cast<double>(run.recipe.steps * run.recipe.batches.accumulate);
  const double epochs = micro_batches / static_cast<double>(run.order->batches_per_epoch());
  return {.recipe = run.recipe,
      .validation = run.validation,
      .config = run.config,
      .files = run.files,
      .note = run.note,
      .tokenizer = run.tokenizer,
      .has_valid = run.valid != nullptr,
      .carries = run.order->carries(),
      .scored = epochs * static_cast<double>(run.order->targets_per_epoch()),
      .state_bytes = run.data->header().kind == shard::Kind::pairs
                         ? 0
                         : run.model->state_bytes(run.recipe.batches.segment),
      .sharded = run.thrift.sharded(),
      .epochs = epochs};
}

}  // namespace

Prefetch::Prefetch(const shard::Dataset& data, Order& order, std::int64_t first,
    MicroBatchShare share, TokenRules rules, torch::Device device, const TargetShard* targets)
    : data_(data), order_(order), share_(share), rules_(std::move(rules)), targets_(targets),
      device_(device), read_(first * share.count) {
  if (!device_.is_cpu())
    beside_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
  begin();
}

Prefetch::~Prefetch() {
  if (ahead_.valid()) ahead_.wait();
}

void Prefetch::begin() {
  const std::int64_t index = share_.at(read_++);
  // If no thread can start, the batch is read when it is needed.
  ahead_ = std::async(std::launch::async | std::launch::deferred, [this, index] {
    const auto rows = order_.rows(index);
    auto micro = read_batch(data_, rows, index);
    apply(rules_, micro);
    if (targets_ != nullptr) micro.teachers = targets_->read(rows, micro.batch.steps());
    return upload(std::move(micro));
  });
}

Prefetch::Ahead Prefetch::upload(MicroBatch micro) const {
  if (!beside_) return {std::move(micro)};
  const c10::StreamGuard beside(*beside_);
  micro.batch = micro.batch.to(device_);
  c10::Event copied(device_.type());
  copied.record(*beside_);
  return {std::move(micro), std::move(copied)};
}

MicroBatch Prefetch::next() {
  const auto start = std::chrono::steady_clock::now();
  Ahead ahead = ahead_.get();
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ahead.copied) {
    const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    ahead.copied->block(stream);
    // The tensors belong to the other stream. record_stream() keeps their memory until this stream
    // has read them.
    const auto& batch = ahead.micro.batch;
    for (const auto& tensor : {batch.inputs, batch.targets, batch.weight, batch.source})
      if (tensor.defined()) tensor.record_stream(stream);
  }
  begin();
  return std::move(ahead.micro);
}

TokenObjective::TokenObjective(Run run, std::shared_ptr<ranks::Group> group)
    : Objective(settings_of(run)), run_(std::move(run)),
      learner_(run_.model, run_.recipe, run_.order->carries(), run_.seed, run_.device,
          std::move(group), run_.record, run_.part, run_.thrift) {
  if (learns_memory(run_) && !validates_memory(run_)) calibration_ = calibration_batches(run_);
}

Update TokenObjective::update(std::int64_t step, std::int64_t data) {
  const MicroBatchShare share = learner_.share();
  if (!prefetch_)
    prefetch_.emplace(
        *run_.data, *run_.order, data, share, run_.rules, learner_.device(), run_.targets.get());
  return learner_.update(
      step, core::generated(share.count, [&](auto) { return prefetch_->next(); }));
}

std::vector<std::vector<torch::Tensor>> TokenObjective::block_weights() const {
  const auto* const blocks = dynamic_cast<nn::LendingBlocks*>(run_.model->architecture.get());
  if (blocks == nullptr || run_.part) return {};
  return blocks->block_weights();
}

Objective::Valid TokenObjective::validate() {
  const auto valid = train::validate(run_);
  return {valid.totals.loss(), valid.joint_temperature};
}

std::optional<double> TokenObjective::calibrated() {
  if (validates_memory(run_)) return validate().joint_temperature;
  if (!learns_memory(run_)) return std::nullopt;
  return calibrate(
      *run_.model, calibration_,
      [this](std::int64_t micro) { return learner_.rule(run_.recipe.steps, micro); },
      run_.recipe.objective.memory_temperature, run_.device);
}

void TokenObjective::put(model::Checkpoint& checkpoint) const {
  learner_.put(checkpoint);
  if (run_.lora) checkpoint.facts["base"] = run_.from;  // the model that its terms belong to
}

void TokenObjective::take_model(const std::string& folder) {
  learner_.take_weights(model::load(folder).model->named_weights());
}

void TokenObjective::save(
    const std::string& folder, std::optional<double> joint_temperature) const {
  if (run_.lora) return run_.lora->save(folder, run_.from);
  core::OrderedJson facts;
  for (const auto& [key, value] : run_.facts.items()) {
    facts[key] = value;
    if (joint_temperature && key == "memory_temperature")
      facts["joint_temperature"] = *joint_temperature;
  }
  model::save(folder, *run_.model, facts, run_.tokenizer, run_.carried);
}

}  // namespace train
