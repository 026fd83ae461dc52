#pragma once
// What memory options come to for a model: nothing is left open, and files are opened.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "infer/sources/gate.h"
#include "infer/sources/memory_options.h"
#include "infer/sources/ngram_memory.h"
#include "infer/sources/slots.h"
#include "infer/sources/source.h"
#include "infer/sources/with_models.h"
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
  JointPart joint{"datastore"};

  bool any() const { return opened != nullptr; }
  bool joined() const { return any() && combine != "interpolate"; }
  bool interpolated() const { return any() && (combine == "interpolate" || combine == "both"); }
};

/// See MemoryOptions, whose names these are. As it is made: no memory at all.
struct MemoryPlan {
  nn::MemoryRule rule;  ///< of local and long: with the joint temperature, reach in tokens
  std::string combine = "joint";
  double memory_lambda = 0.25;
  JointPart local{"local"}, far{"long"};
  std::int64_t cache = 0;
  double cache_theta = 1, cache_lambda = 0.1;
  double cache_unit = 1;  ///< of theta: 1 / sqrt(d_model)
  StorePlan stores;
  NgramPlan ngrams;
  WithPlan with;
  GatePlan gates;  ///< shares above of what has one: those that were its constants
  Slots more;      ///< of kinds that have no members here
  std::string tuned_on;
  bool online = false;          ///< the weights are the first ones of some that are learned
  bool online_asked = false;    ///< by name; else tuning ends it
  bool weights_follow = false;  ///< see MemoryOptions

  bool interpolated() const { return combine == "interpolate" && rule.any(); }

  // What follows asks source_kinds().
  /// False: scores are the head's own.
  bool any() const;
  /// Kinds that take part.
  std::vector<const SourceKind*> kinds() const;
  /// In the order in which sources give distributions of their own; pointers into the plan.
  std::vector<PlanWeight> weights();
  std::vector<PlanWeight> weights() const { return const_cast<MemoryPlan*>(this)->weights(); }
  /// Parts of the joint softmax, in the order of kinds().
  std::vector<JointPart*> joint();
  std::vector<JointPart*> joint() const { return const_cast<MemoryPlan*>(this)->joint(); }
  /// The same of one kind.
  std::vector<JointPart> joint(const SourceKind& kind) const;
  /// What divides the scores of a part.
  double temperature_of(const JointPart& part) const {
    return part.temperature > 0 ? part.temperature : rule.temperature;
  }
  /// Numbers that can be tuned; one that several kinds name is listed once.
  std::vector<PlanAxis> axes();
  /// Positions are remembered; and as many as matter before a window.
  bool remembers() const;
  std::int64_t reach(std::int64_t streamed = 0) const;
  bool in_order() const;
  std::vector<std::shared_ptr<const BesideModel>> beside() const;
  bool reads() const;
  bool wants_more(std::span<const std::int64_t> read) const;
  bool cites() const;
  /// The stores that are asked, null: none; and for how many entries.
  const std::shared_ptr<const Stores>& lookup() const { return stores.opened; }
  std::int64_t entries() const { return stores.any() ? stores.k : 0; }
  /// Without what is of these texts, where a source does not leave it out by itself.
  MemoryPlan without(const shard::Fingerprints& texts) const;
  /// Where probability comes from: vocabulary, local, long, cache, each store and each further
  /// model by its folder, n-grams; those that the plan has.
  std::vector<std::string> names() const;
  void sign(const SayFact& say) const;
  /// What joins the softmax is divided by its own mass: scores to search with, no probabilities.
  bool released() const { return stores.combine == "released"; }
  /// Throws Error{usage} where that is so.
  void expect_probabilities() const;
  /// Lines to be said where a text with these fingerprints is scored.
  void notes(const shard::Fingerprints& texts, const char* what, const SayLine& say) const;
  /// Nothing more is asked by this process.
  void finish() const;
};

/// The first weight of a source whose weight is learned.
inline constexpr double kFirstShare = 0.05;

/// How a model's stores are opened; see open_stores().
using StoreOpener = std::function<std::shared_ptr<const Stores>(
    const std::vector<std::string>& folders, const model::Loaded& loaded)>;

/// What options are planned for.
struct PlanContext {
  const WindowPlan& windows;  ///< of the text: how long a segment is where the model does not say
  const nn::Model& model;
  const model::TrainingFacts& facts;
  const model::Loaded* loaded = nullptr;  ///< null: nothing is opened
  std::shared_ptr<const Stores> opened = nullptr;
  const StoreOpener* open = nullptr;
  bool online = false;  ///< weights are learned

  /// A share that is left open: the first weight of one that is learned, else this.
  double open_share(double constant) const { return online ? kFirstShare : constant; }
};

/// `opened`: the stores of options.stores.folders; n-grams are not opened, nor further models (see
/// open_with()). Throws Error{usage} for what contradicts itself or the model, and for stores that
/// are to be followed and cannot be.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const nn::Model& model, const model::TrainingFacts& facts = {},
                       std::shared_ptr<const Stores> opened = nullptr);
/// The same; opens the stores, by open_stores() where `open` is not given, and the n-grams, and
/// takes the models that read beside (see open_beside()). Throws as these do too.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const model::Loaded& loaded,
                       std::vector<std::shared_ptr<const BesideModel>> beside = {},
                       const StoreOpener& open = nullptr);

/// Throws Error{usage} for memories that join the softmax of one head where several passages give
/// one each.
void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory);

/// `asked` with what was left open, and what can be tuned, as the plan says it: options that come
/// to the same plan.
MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan);

}  // namespace infer
