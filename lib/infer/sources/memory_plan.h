#pragma once
// Memory options resolved for a model, with files opened.

#include "infer/sources/ensemble.h"
#include "infer/sources/gate.h"
#include "infer/sources/source.h"
#include "infer/windows/window_plan.h"
#include "ngrams/ngram_index.h"

namespace infer {

class Stores;

/// Resolved options of the datastores; see StoreOptions.
struct StorePlan {
  std::shared_ptr<const Stores> opened;  ///< null: no datastores
  std::string combine = "joint";         ///< joint, interpolate, both or released
  std::int64_t k = 1024, nprobe = 32;
  std::int64_t follow = 0;
  bool rescore = false;
  double lambda = 0.25, temperature = 1;
  JointPart joint{"datastore"};

  bool any() const { return opened != nullptr; }
  bool joined() const { return any() && combine != "interpolate"; }
  bool interpolated() const { return any() && (combine == "interpolate" || combine == "both"); }
};

/// Resolved NgramOptions. The mixture interpolates n-grams with all other sources by the weight of
/// the context's bucket.
struct NgramPlan {
  std::shared_ptr<const ngrams::Index> index;  ///< null: no n-grams
  std::vector<double> lambda;                  ///< weight of each bucket
  bool any() const { return index != nullptr; }
};

/// Resolved MemoryOptions. Default-constructed: no memory.
struct MemoryPlan {
  nn::MemoryRule rule;  ///< of local and long memory: joint temperature, reach in tokens
  std::string combine = "joint";
  double memory_lambda = 0.25;
  JointPart local{"local"}, far{"long"};
  std::int64_t cache = 0;
  double cache_theta = 1, cache_lambda = 0.1;
  double cache_unit = 1;  ///< unit of theta: 1 / sqrt(d_model)
  StorePlan stores;
  NgramPlan ngrams;
  EnsemblePlan with;
  GatePlan gates;  ///< the weight above of a gated source is the constant of its gate
  Slots more;      ///< plans of kinds without members here
  std::string tuned_on;
  bool online = false;              ///< weights are learned online; the values are the initial ones
  bool online_asked = false;        ///< online weights are requested explicitly; otherwise tuning
                                    ///< disables them
  bool constant_for_parts = false;  ///< they would be, but the text is scored in parts
  bool weights_follow = false;      ///< see MemoryOptions

  bool interpolated() const { return combine == "interpolate" && rule.any(); }

  // The following functions query source_kinds().
  /// Returns whether any memory takes part; false: the scores are the head's own.
  bool any() const;
  /// Returns the kinds that take part.
  std::vector<const SourceKind*> kinds() const;
  /// Returns pointers to the weights, in the order in which sources return distributions of their
  /// own.
  std::vector<PlanWeight> weights();
  std::vector<PlanWeight> weights() const { return const_cast<MemoryPlan*>(this)->weights(); }
  /// Returns pointers to the parts of the joint softmax, in the order of kinds().
  std::vector<JointPart*> joint();
  std::vector<JointPart*> joint() const { return const_cast<MemoryPlan*>(this)->joint(); }
  /// Returns copies of the parts of one kind.
  std::vector<JointPart> joint(const SourceKind& kind) const;
  /// Returns the divisor of a part's scores.
  double temperature_of(const JointPart& part) const {
    return part.temperature > 0 ? part.temperature : rule.temperature;
  }
  /// Returns the tunable parameters; a parameter of several kinds occurs once.
  std::vector<PlanAxis> axes();
  /// Returns whether a kind that takes part has the fact.
  bool has(bool KindFacts::*fact) const;
  bool remembers() const { return has(&KindFacts::remembers); }
  /// Returns how many positions before a window matter.
  std::int64_t reach(std::int64_t streamed = 0) const;
  std::vector<std::shared_ptr<const BesideModel>> beside() const;
  bool wants_more(std::span<const std::int64_t> read) const;
  /// lookup(): the datastores to search, null if none. entries(): the number of neighbours.
  const std::shared_ptr<const Stores>& lookup() const { return stores.opened; }
  std::int64_t entries() const { return stores.any() ? stores.k : 0; }
  /// Returns the plan without entries of these texts, for sources that do not exclude them on their
  /// own.
  MemoryPlan without(const shard::Fingerprints& texts) const;
  /// Returns the names of the probability sources in the plan: vocabulary, local, long, cache, each
  /// datastore and each further model by its folder, n-grams.
  std::vector<std::string> names() const;
  /// Returns the last of names(), without the vocabulary, local and long.
  std::vector<std::string> given_names() const;
  void sign(const SayFact& say) const;
  /// Returns whether the joined masses are divided by their own sum: scores for a search, not
  /// probabilities.
  bool released() const { return stores.combine == "released"; }
  /// Throws Error{usage} if released() is true.
  void expect_probabilities() const;
  /// Passes notes to `say` that concern scoring a text with these fingerprints.
  void notes(const shard::Fingerprints& texts, const char* what, const SayLine& say) const;
  /// Announces that this process makes no more searches.
  void finish() const;
};

/// Initial weight of a source whose weight is learned online.
inline constexpr double kFirstShare = 0.05;

/// Opens the datastores of a model; see open_stores().
using StoreOpener = std::function<std::shared_ptr<const Stores>(
    const std::vector<std::string>& folders, const model::Loaded& loaded)>;

/// Inputs of the planning.
struct PlanContext {
  const WindowPlan& windows;  ///< windows of the text; give the segment length if the model has
                              ///< none
  const nn::Model& model;
  const model::TrainingFacts& facts;
  const model::Loaded* loaded = nullptr;  ///< null: nothing is opened
  std::shared_ptr<const Stores> opened = nullptr;
  const StoreOpener* open = nullptr;
  std::shared_ptr<const ngrams::Index> ngrams = nullptr;  ///< null: not open yet
  bool online = false;                                    ///< weights are learned online

  /// Returns the value of an unset weight: the initial one if learned online, else `constant`.
  double open_share(double constant) const { return online ? kFirstShare : constant; }
};

/// Resolves the options. `opened` holds the datastores of options.stores.folders; n-grams and
/// further models are not opened (see OpenMemories). Throws Error{usage} for options that
/// contradict each other or the model, for options.flags of sources that do not take part, and for
/// --min-pointers with datastores that do not support it.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
    const nn::Model& model, const model::TrainingFacts& facts = {},
    std::shared_ptr<const Stores> opened = nullptr);
/// A model's open memories. They are opened once, even if the memories are planned several times.
struct OpenMemories {
  std::vector<std::shared_ptr<const BesideModel>> beside = {};  ///< see open_beside()
  StoreOpener open = nullptr;                                   ///< null: open_stores()
  std::shared_ptr<const Stores> stores = nullptr;               ///< null: not open yet
  std::shared_ptr<const ngrams::Index> ngrams = nullptr;        ///< null: not open yet

  /// Resolves the options with plan_memory() and opens the datastores and n-grams that are not open
  /// yet. Also throws the errors of opening.
  MemoryPlan plan(
      const MemoryOptions& options, const WindowPlan& windows, const model::Loaded& loaded);
};

/// Throws Error{usage} if memories join the softmax of one head while several passages each give a
/// softmax.
void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory);

/// Returns `asked` with unset and tunable options replaced by the plan's values: options that
/// resolve to an equal plan.
MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan);

}  // namespace infer
