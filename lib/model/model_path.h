#pragma once
// The model's folder that a path means.

#include <string>

namespace model {

/// The folder of a model: `path` itself; that of its config.json or of its weights; a run's, of one
/// of its step-N/; the snapshot of a hub's cache (core::followed_snapshot). Everything else is
/// refused, saying what it is and how a model is made of it: Error{no_input} where nothing is there
/// or a folder is no model's, Error{bad_data} for a file or folder of another kind,
/// Error{bad_config} where an adapter lies beside a model and `beside` says that it may not.
enum class Beside {
  refused,
  left,  ///< the caller has an adapter that it was given, or needs no weights
};
std::string model_folder(const std::string& path, Beside beside = Beside::refused);

}  // namespace model
