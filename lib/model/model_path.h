#pragma once
// Resolves a path to a model folder.

#include <string>

namespace model {

/// model_folder() accepts a folder, its config.json or weights, a run folder, one of its step-N/
/// folders, and a snapshot of a hub's cache (core::followed_snapshot). For other paths it throws an
/// error with a hint: Error{no_input} if nothing exists there or a folder contains no model;
/// Error{bad_data} for a file or folder of another kind; Error{bad_config} if an adapter lies
/// beside the model and `beside` is refused.
enum class Beside {
  refused,
  left,  ///< the caller has an explicit adapter, or needs no weights
};
std::string model_folder(const std::string& path, Beside beside = Beside::refused);

}  // namespace model
