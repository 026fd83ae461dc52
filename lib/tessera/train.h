#pragma once
// Trains models.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/options.h"

namespace tessera {

/// What train() reports after each step.
struct TrainProgress {
  std::int64_t step = 0, steps = 0;  ///< steps done, and of the run
  std::optional<double> loss;        ///< the last known, in nats a token
  std::optional<double> valid_loss;
};

/// Trains a model on texts or shards into `folder`, as train(1) does in one process, and continues
/// from its last checkpoint if there is one. `options`: those of train ("layers", "d-model",
/// "steps", "memory", "valid", "from", ...). Texts are encoded by the tokenizer of "from", else of
/// a shard among the files, else by one that is learned from them. `progress` returns false to
/// stop: the checkpoint is then saved, and a later call goes on. Returns whether the model is
/// complete. Throws Error{64} for options that contradict each other or the run in the folder,
/// Error{65} for unusable data.
bool train(const std::vector<std::string>& files, const std::string& folder,
    const Options& options = {}, const std::function<bool(const TrainProgress&)>& progress = {});

}  // namespace tessera
