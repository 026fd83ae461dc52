#include "train/memory_rows.h"

#include "nn/ops/gathered_sum.h"

namespace train {

MemoryRows::MemoryRows(std::shared_ptr<nn::Model> model, std::int64_t most)
    : model_(std::move(model)), most_(most) {
  for (const auto& [name, weight] : model_->named_weights()) {
    if (!is_memory_table(name)) {
      torch::Tensor(weight).set_requires_grad(false);
      continue;
    }
    tables_.emplace_back(name, weight);
    values_.push_back(weight);
    background_.push_back(torch::zeros({weight.size(0)}, torch::kInt64));
    reads_.push_back(background_.back().clone());
  }
  if (tables_.empty())
    core::bad_usage(
        "--only-memory-rows: the model has no memory layer; a transformer gets one with --memory-layer ngram");
}

std::int64_t MemoryRows::rows() const {
  return std::transform_reduce(values_.begin(), values_.end(), std::int64_t{0}, std::plus<>(),
      [](const torch::Tensor& table) { return table.size(0); });
}

void MemoryRows::to(torch::Device device) {
  for (auto* counts : {&reads_, &background_})
    for (auto& of : *counts) of = of.to(device);
}

void MemoryRows::forward(const std::function<void()>& pass) {
  for (auto& reads : reads_) reads.zero_();
  const nn::RowReads counting(values_, reads_);
  pass();
}

std::int64_t MemoryRows::read_background(
    const shard::Dataset& data, Order& order, const TokenRules& rules) {
  const torch::NoGradGuard no_grad;
  const auto device = values_[0].device();
  to(device);
  model_->eval();
  for (micro_batches_ = 0; micro_batches_ < order.batches_per_epoch(); ++micro_batches_) {
    auto micro = read_batch(data, order.rows(micro_batches_), micro_batches_);
    train::apply(rules, micro);
    forward([&] { model_->architecture->forward(micro.batch.to(device), nullptr); });
    for (std::size_t i = 0; i < reads_.size(); ++i) background_[i].add_(reads_[i] > 0);
  }
  return core::sum_of(background_,
      [](const torch::Tensor& counts) { return (counts > 0).sum().item<std::int64_t>(); });
}

void MemoryRows::take_gradients() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    auto& gradient = values_[i].mutable_grad();
    if (!gradient.defined()) continue;
    const auto rare = -torch::log(
        (background_[i] + 1).to(torch::kFloat64) / static_cast<double>(micro_batches_ + 1));
    const auto score = reads_[i] * rare;
    const auto order = std::get<1>(score.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
    const auto best = order.narrow(0, 0, std::min(most_, order.size(0)));
    const auto chosen =
        torch::zeros_like(score, torch::kBool).index_fill_(0, best, true) & (score > 0);
    if (gradient.is_sparse()) {
      const auto settled = nn::settled(gradient);
      const auto rows = nn::rows_of_gradient(settled);
      const auto kept = chosen.index_select(0, rows).nonzero().flatten();
      gradient = nn::row_gradient(rows.index_select(0, kept),
          nn::values_of_gradient(settled).index_select(0, kept), gradient.sizes());
    } else {
      gradient.mul_(chosen.unsqueeze(1));
    }
  }
}

}  // namespace train
