#pragma once
// Resolves a path to a model folder.
// Loads the model or adapter of an unfinished run from one of its checkpoints.

#include "model/adapter.h"

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

/// A checkpoint of a run without a finished model.
struct UnfinishedRun {
  std::string folder;      ///< run folder: config.json, tokenizer.json
  std::string checkpoint;  ///< step-N/ folder
  bool best = true;        ///< uses the weights that the run would keep so far, not those of step N
};

/// The adapter that an unfinished run of train --lora would write.
struct UnfinishedAdapter {
  std::string base;  ///< folder of the base model, as given to --from
  std::unique_ptr<Adapter> adapter;
  std::string base_fingerprint;  ///< fingerprint of the base model
};

/// Returns the run if `path` is a run folder with a checkpoint and no model (uses the latest
/// checkpoint), or a step-N/ folder of a run; else nullopt.
std::optional<UnfinishedRun> unfinished_run(const std::string& path);

/// Reads the weights that the run would keep: those of the best validation, the present mean
/// (--average-checkpoints), or the checkpoint's own. `which` receives a description with their
/// step. On
/// the CPU, as `dtype`. Throws the errors of load_checkpoint() and read_model().
ReadModel read_unfinished(
    const UnfinishedRun& run, const Config& config, torch::Dtype dtype, std::string& which);

/// Reads the terms that the run would keep, chosen as in read_unfinished(); nullopt if the run
/// trains weights. Throws Error{bad_data} if the checkpoint does not name its model, and the errors
/// of load_checkpoint() and Adapter.
std::optional<UnfinishedAdapter> unfinished_adapter(
    const UnfinishedRun& run, const Config& config, std::string& which);

}  // namespace model
