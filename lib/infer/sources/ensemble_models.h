#pragma once
// Models that read the text beside the main model, each within its own windows.

#include "infer/sources/memory_options.h"
#include "infer/windows/window_options.h"

namespace infer {

/// A model in evaluation mode and its window options.
struct EnsembleModel {
  model::Loaded loaded;
  WindowOptions windows;
};
using EnsembleModels = std::vector<std::shared_ptr<const EnsembleModel>>;

/// Opens the models that each of source_kinds() names in `options`, beside `loaded`, and sets the
/// reach of layers in all of them; call it before windows are planned. Returns them by the name of
/// the kind. Throws Error{bad_data} with both fingerprints for a different tokenizer. Throws
/// Error{usage} if only one of two models reads a source, and for windows that score other tokens
/// (--protocol llama.cpp). Also throws the errors of model::load(), plan_windows() and
/// LayerReachOptions::apply().
std::map<std::string, EnsembleModels> open_models(const MemoryOptions& options,
    const model::Loaded& loaded, const LayerReachOptions& reach, const WindowOptions& windows,
    torch::Device device, std::optional<torch::Dtype> dtype = torch::kFloat32);

}  // namespace infer
