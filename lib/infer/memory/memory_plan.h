#pragma once
// What memory options come to for a model: nothing is left open, and stores are opened.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "infer/memory/gate.h"
#include "infer/memory/memory_options.h"
#include "infer/memory/ngram_memory.h"
#include "infer/memory/with_models.h"
#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/arch/model.h"
#include "nn/base/memory_rule.h"

namespace infer {

class Stores;

/// Of the stores; see StoreOptions.
struct StorePlan {
  std::shared_ptr<const Stores> opened;  ///< null: none take part
  std::string combine = "joint";         ///< joint, interpolate, both, released
  std::int64_t k = 1024, nprobe = 32;
  std::int64_t follow = 0;
  bool rescore = false;
  double lambda = 0.25, temperature = 1;

  bool any() const { return opened != nullptr; }
  bool joined() const { return any() && combine != "interpolate"; }
  bool interpolated() const { return any() && (combine == "interpolate" || combine == "both"); }
};

/// See MemoryOptions, whose names these are. As it is made: no memory at all.
struct MemoryPlan {
  nn::MemoryRule rule;  ///< of local and long: with the joint temperature, reach in tokens
  std::string combine = "joint";
  double memory_lambda = 0.25;
  std::int64_t cache = 0;
  double cache_theta = 1, cache_lambda = 0.1;
  StorePlan stores;
  NgramPlan ngrams;
  WithPlan with;
  GatePlan gates;  ///< shares above of what has one: those that were its constants
  std::string tuned_on;

  bool interpolated() const { return combine == "interpolate" && rule.any(); }
  /// False: scores are the head's own.
  bool any() const { return rule.any() || cache > 0 || stores.any() || ngrams.any() || with.any(); }
};

/// `windows` are those of the text: they say how long a segment is where the model does not.
/// `opened`: the stores of options.stores.folders; n-grams are not opened, nor further models (see
/// open_with()). Throws Error{usage} for what contradicts itself
/// or the model, and for stores that are to be followed and cannot be.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const nn::Model& model, const model::TrainingFacts& facts = {},
                       std::shared_ptr<const Stores> opened = nullptr);
/// How a model's stores are opened; see open_stores().
using StoreOpener = std::function<std::shared_ptr<const Stores>(
    const std::vector<std::string>& folders, const model::Loaded& loaded)>;
/// The same; opens the stores, by open_stores() where `open` is not given, and the n-grams. Throws
/// as that and open_ngrams() do too.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const model::Loaded& loaded, const StoreOpener& open = nullptr);

/// Throws Error{usage} for memories that join the softmax of one head where several passages give
/// one each.
void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory);

/// `asked` with what was left open, and what can be tuned, as the plan says it: options that come
/// to the same plan.
MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan);

}  // namespace infer
