#pragma once
// Computes the key of a context as a datastore built from a text would contain it.

#include <cstdint>
#include <vector>

#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/base/torch.h"
#include "store/datastore.h"

namespace infer {

/// Returns the windows used for a store's first rows. Throws Error{usage} for a store of pairs,
/// Error{bad_data} for windows that the model does not support.
WindowPlan windows_of(const store::Datastore& store, const model::Loaded& loaded);

/// Returns the model's key (1, d_key), float32, CPU, after `tokens`. The key comes from the last
/// window that ends with these tokens, as for a text's first rows; carried State covers all tokens.
/// Throws Error{usage} for no tokens, Error{bad_data} for a token outside the vocabulary.
torch::Tensor context_key(nn::Model& model, const WindowPlan& windows,
                          const std::vector<std::uint32_t>& tokens, torch::Device device);

}  // namespace infer
