#pragma once
// Tensors whose numbers stay in their file.

#include <string>

#include "model/tensor_reader.h"
#include "nn/base/torch.h"

namespace model {

/// Maps a tensor of the file `path` into memory: its pages are read when they are first touched,
/// and the system may drop them again. Writing to the tensor changes private copies of the pages,
/// never the file. The file may be replaced meanwhile (by renaming), but not cut. Returns an
/// undefined tensor if the tensor is empty or not aligned in the file; throws Error{no_input} and
/// Error{io}.
torch::Tensor map_tensor(const std::string& path, const TensorEntry& entry);

}  // namespace model
