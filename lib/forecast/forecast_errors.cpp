#include "forecast/forecast_errors.h"

#include <cmath>

#include "nn/base/torch.h"

namespace forecast {
namespace {

/// Returns the sums of |error| of one sequence, one for each context.
std::vector<double> errors_of(MemoryUnit& unit, const Model& model, const float* x,
                              const Task& task) {
  const auto width = model.shape.width();
  const float* const weights = model.maps.const_data_ptr<float>();
  std::vector<double> errors;
  std::vector<float> guess(static_cast<std::size_t>(width));
  std::int64_t known = 0;  // rows with observed keys and values
  for (std::int64_t context = 1; context + task.horizon <= task.length; context += task.every) {
    for (std::int64_t t = known; t < context; ++t) {
      unit.set_key(t, x + t * width, weights);
      if (t > 0) unit.set_value(t - 1, x + t * width, weights);
    }
    known = context;
    double sum = 0;
    for (std::int64_t t = context - 1; t < context - 1 + task.horizon; ++t) {
      unit.forecast(t, weights, guess.data());
      const float* const truth = x + (t + 1) * width;
      for (std::int64_t c = 0; c < width; ++c)
        sum += std::abs(static_cast<double>(guess[static_cast<std::size_t>(c)]) - truth[c]);
      unit.set_value(t, guess.data(), weights);
      unit.set_key(t + 1, guess.data(), weights);
    }
    // The last known row has the value of a forecast. The next context replaces it.
    errors.push_back(sum);
  }
  return errors;
}

}  // namespace

std::vector<ContextError> errors_by_context(const Model& model,
                                            const std::vector<const float*>& sequences,
                                            const Task& task) {
  std::vector<std::vector<double>> sums(sequences.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(sequences.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        MemoryUnit unit(model.shape, task.length + 1);
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          sums[i] = errors_of(unit, model, sequences[i], task);
      });
  std::vector<ContextError> errors;
  const double terms = static_cast<double>(sequences.size()) *
                       static_cast<double>(task.horizon * model.shape.width());
  for (std::size_t i = 0; !sums.empty() && i < sums[0].size(); ++i) {
    double total = 0;
    for (const auto& sum : sums) total += sum[i];
    errors.push_back({1 + static_cast<std::int64_t>(i) * task.every, total / terms});
  }
  return errors;
}

}  // namespace forecast
