#pragma once
// Windows of one batch through a model, and which of their rows are scored.

#include <vector>

#include "infer/windows/window_plan.h"
#include "infer/windows/windows.h"
#include "nn/arch/model.h"

namespace infer {

/// What a batch of windows gives. Where State is carried it is one window and `state` goes on from
/// the one before it.
inline nn::Hidden forward_windows(nn::Model& model, const WindowPlan& plan, const nn::Batch& batch,
                                  const Span& first, nn::State& state) {
  auto& architecture = *model.architecture;
  if (!plan.carried) return architecture.forward(batch, nullptr);
  if (!first.fresh && architecture.carry() == nn::Carry::forget)
    architecture.forget(state, plan.window - plan.stride);
  return architecture.forward(batch, &state);
}

/// The rows that are scored of each window, one after the other: (B, T, ...) to (R, ...).
inline torch::Tensor scored_rows(const torch::Tensor& rows, const std::vector<Span>& spans) {
  std::vector<torch::Tensor> pieces;
  for (std::size_t i = 0; i < spans.size(); ++i)
    pieces.push_back(
        rows[static_cast<std::int64_t>(i)].slice(0, spans[i].first_scored, spans[i].length));
  return pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
}

}  // namespace infer
