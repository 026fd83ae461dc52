#pragma once
// Runs a batch of windows through a model, and selects the scored rows.

#include <vector>

#include "infer/windows/window_plan.h"
#include "infer/windows/windows.h"
#include "nn/arch/model.h"

namespace infer {

/// Encodes a batch of windows. With carried State, the batch is one window and `state` continues
/// from the previous one.
inline nn::Hidden forward_windows(nn::Model& model, const WindowPlan& plan, const nn::Batch& batch,
                                  const Span& first, nn::State& state) {
  auto& architecture = *model.architecture;
  if (!plan.carried) return architecture.forward(batch, nullptr);
  if (!first.fresh && architecture.carry() == nn::Carry::forget)
    architecture.forget(state, plan.window - plan.stride);
  return architecture.forward(batch, &state);
}

/// Concatenates the scored rows of all windows: (B, T, ...) to (R, ...).
inline torch::Tensor scored_rows(const torch::Tensor& rows, const std::vector<Span>& spans) {
  std::vector<torch::Tensor> pieces;
  for (std::size_t i = 0; i < spans.size(); ++i)
    pieces.push_back(
        rows[static_cast<std::int64_t>(i)].slice(0, spans[i].first_scored, spans[i].length));
  return pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
}

}  // namespace infer
