#pragma once
// Reads transformers folders with pickled weights: pytorch_model.bin, or the files named in
// pytorch_model.bin.index.json.

#include <memory>
#include <string>

#include "model/folder.h"

namespace model {

/// Returns whether `folder` has pickled weights.
bool has_pickled_weights(const std::string& folder);

/// Loads the model as load() does; memory contains the model and the folder's tensors as float32.
/// Throws the errors of load(), and Error{bad_data} for a tensor in two files.
Loaded load_pickled(const std::string& folder);

}  // namespace model
