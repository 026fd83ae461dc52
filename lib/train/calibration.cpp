#include "train/calibration.h"

#include <algorithm>

#include "infer/windows/head_rows.h"
#include "nn/memory/joint_loss.h"
#include "nn/memory/memory_block.h"
#include "train/log.h"

namespace train {
namespace {

using torch::Tensor;

constexpr std::int64_t kBatches = 8;
constexpr std::int64_t kQueries = 512;  // queries whose scores exist at once

// Returns the sums of weight * nll at each temperature: (n), float64 on the CPU.
Tensor nats_of(nn::Model& model, const nn::Batch& batch, const nn::MemoryRule& rule,
               const std::vector<double>& temperatures) {
  const nn::Hidden hidden = model.architecture->forward(batch, nullptr);
  const auto dtype = model.head->weights().at(0).scalar_type();
  const Tensor f = hidden.output.flatten(0, 1), keys = hidden.key.flatten(0, 1).to(dtype),
               targets = batch.targets.flatten(), weight = batch.weight.flatten();
  const infer::HeadRows head = infer::head_rows(*model.head, f, targets);
  const nn::Entries entries{keys, targets, batch.place.flatten()};
  Tensor nats = torch::zeros({static_cast<std::int64_t>(temperatures.size())}, torch::kFloat64);
  for (std::int64_t begin = 0; begin < f.size(0); begin += kQueries) {
    const std::int64_t end = std::min(begin + kQueries, f.size(0));
    const auto rows = [&](const Tensor& tensor) { return tensor.slice(0, begin, end); };
    const auto seen = nn::tempered_masses(rows(keys), entries.place.slice(begin, end),
                                          rows(targets), entries, rule, temperatures);
    const Tensor log_prob =
        nn::join({rows(head.log_prob), rows(head.log_z), seen.all, seen.positive});
    nats -= (log_prob * rows(weight)).sum(1, /*keepdim=*/false, torch::kFloat64).to(torch::kCPU);
  }
  return nats;
}

}  // namespace

std::vector<double> calibration_points(double trained, double least) {
  std::vector<double> points;
  for (const double step : kCalibrationSteps)
    if (step >= least) points.push_back(rounded(step * trained));
  return points;
}

std::vector<MicroBatch> calibration_batches(const Run& run) {
  std::vector<MicroBatch> batches;
  for (std::int64_t i = 0; i < kBatches; ++i) {
    batches.push_back(read_batch(*run.data, run.order->rows(i), i));
    apply(run.rules, batches.back());
  }
  return batches;
}

double calibrate(nn::Model& model, const std::vector<MicroBatch>& batches,
                 const std::function<nn::MemoryRule(std::int64_t)>& rule, double trained,
                 torch::Device device) {
  const torch::NoGradGuard no_gradient;
  const bool training = model.is_training();
  model.eval();
  const std::vector<double> points = calibration_points(trained, 1);
  Tensor nats = torch::zeros({static_cast<std::int64_t>(points.size())}, torch::kFloat64);
  for (const auto& micro : batches)
    nats += nats_of(model, micro.batch.to(device), rule(micro.index), points);
  model.train(training);
  const auto* const sums = nats.const_data_ptr<double>();
  return points[static_cast<std::size_t>(std::min_element(sums, sums + points.size()) - sums)];
}

}  // namespace train
