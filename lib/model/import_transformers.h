#pragma once
// A folder of transformers whose weights are pickled: pytorch_model.bin, or those that
// pytorch_model.bin.index.json names.

#include <memory>
#include <string>

#include "model/folder.h"

namespace model {

/// Whether `folder` is one.
bool has_pickled_weights(const std::string& folder);

/// The model as load() gives one, in memory beside the folder's tensors as float32. Throws as
/// load(), Error{bad_data} for a tensor that stands in two files.
Loaded load_pickled(const std::string& folder);

}  // namespace model
