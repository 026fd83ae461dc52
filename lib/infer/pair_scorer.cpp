#include "infer/pair_scorer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "infer/pairs.h"

namespace infer {
namespace {

double nats_of(nn::Model& model, const nn::Batch& batch) {
  const auto hidden = model.architecture->forward(batch, nullptr);
  const auto scored = (batch.weight.flatten() > 0).nonzero().flatten();
  const auto f = hidden.f.flatten(0, 1).index_select(0, scored);
  const auto targets = batch.targets.flatten().index_select(0, scored);
  return -model.head->block(f, targets, /*gradient=*/false)
              ->log_prob.sum(torch::kFloat64)
              .item<double>();
}

}  // namespace

Totals score_pairs(nn::Model& model, const shard::Dataset& data, std::int64_t batch_tokens,
                   torch::Device device, const std::function<void(std::uint64_t)>& progress) {
  check_pairs(data);
  const auto start = std::chrono::steady_clock::now();
  const auto& documents = data.documents();
  std::vector<std::int64_t> order(documents.size() / 2);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return target_of(documents, a).length < target_of(documents, b).length;
  });
  const torch::NoGradGuard no_gradient;
  const bool training = model.is_training();
  model.eval();
  Totals totals;
  for (const auto& pairs : group_pairs(documents, order, batch_tokens)) {
    totals.nats += nats_of(model, read_pairs(data, pairs).to(device));
    for (const auto pair : pairs) {
      const auto target = 2 * static_cast<std::size_t>(pair) + 1;
      totals.tokens += static_cast<std::uint64_t>(target_of(documents, pair).length);
      totals.bytes += static_cast<double>(documents.bytes[target]);
      totals.words += static_cast<double>(documents.words[target]);
    }
    if (progress) progress(totals.tokens);
  }
  model.train(training);
  if (!std::isfinite(totals.nats))
    core::fail(core::Code::bad_data,
               "{}: the loss is not finite; the model's weights may be damaged", data.name());
  totals.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return totals;
}

}  // namespace infer
