#pragma once
// The key that a store built of a text has for a context.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/base/torch.h"
#include "store/datastore.h"

namespace infer {

/// Windows as they were when a store's first rows were made. Throws Error{usage} for a store of
/// pairs, Error{bad_data} for windows that the model cannot have.
WindowPlan windows_of(const store::Datastore& store, const model::Loaded& loaded);

/// The model's key (1, d_key), float32, CPU, behind these tokens: of the last window that they end,
/// as a text's first rows have it; carried State goes through all of them. Throws Error{usage} for
/// none, Error{bad_data} for a token outside the vocabulary.
torch::Tensor context_key(nn::Model& model, const WindowPlan& windows,
                          const std::vector<std::uint32_t>& tokens, torch::Device device);

}  // namespace infer
