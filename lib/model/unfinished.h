#pragma once
// The model that a run would be, which is not finished: the weights, or the terms of an adapter, in
// one of its checkpoints.

#include <memory>
#include <optional>
#include <string>

#include "model/adapter.h"
#include "model/weights.h"

namespace model {

/// Of a path that means a run's weights and no finished model.
struct UnfinishedRun {
  std::string folder;      ///< of the run: config.json, tokenizer.json
  std::string checkpoint;  ///< its step-N/
  bool best = true;        ///< the weights kept so far are meant, not those of step N itself
};

/// The adapter that a run of train --lora would be.
struct UnfinishedAdapter {
  std::string base;  ///< folder of the model that it is of, as --from named it
  std::unique_ptr<Adapter> adapter;
  std::string base_fingerprint;  ///< that the model had
};

/// `path` is a folder in which train began a run that has a checkpoint and no model yet, of which
/// the latest is meant; or one of a run's step-N/. Else nothing.
std::optional<UnfinishedRun> unfinished_run(const std::string& path);

/// The weights as the run's end would keep them: those of the best validation, the mean so far
/// (--average-last), else the checkpoint's own, which `which` says with their step. On the CPU, as
/// `dtype`. Throws as load_checkpoint() and read_model() do.
ReadModel read_unfinished(const UnfinishedRun& run, const Config& config, torch::Dtype dtype,
                          std::string& which);

/// The terms that the run's end would keep, as read_unfinished(); nothing where the run trains
/// weights. Throws Error{bad_data} where the checkpoint does not name its model, and as
/// load_checkpoint() and Adapter do.
std::optional<UnfinishedAdapter> unfinished_adapter(const UnfinishedRun& run, const Config& config,
                                                    std::string& which);

}  // namespace model
