#pragma once
// Memory options resolved for a model, with files opened.

#include "infer/sources/gate.h"
#include "infer/sources/source.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// Resolved MemoryOptions, with the plan of each kind as of<KIND's plan>(). Default-constructed: no
/// memory.
struct MemoryPlan : Slots {
  double joint_temperature = 1;  ///< of parts of the joint softmax without one of their own
  GatePlan gates;  ///< the weight in the plan of a gated source is the constant of its gate
  std::string tuned_on;
  bool online = false;              ///< weights are learned online; the values are the initial ones
  bool online_asked = false;        ///< online weights are requested explicitly; otherwise tuning
                                    ///< disables them
  bool constant_for_parts = false;  ///< they would be, but the text is scored in parts
  bool weights_follow = false;      ///< see MemoryOptions
  /// The option by which joined masses are divided by their own sum; empty: by the whole.
  std::string released_by;

  // The following functions query source_kinds().
  /// Returns whether any memory takes part; false: the scores are the head's own.
  bool any() const { return !kinds().empty(); }
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
    return part.temperature > 0 ? part.temperature : joint_temperature;
  }
  /// Returns the tunable parameters; a parameter of several kinds occurs once.
  std::vector<PlanAxis> axes();
  /// Returns whether a kind that takes part has the fact.
  bool has(bool KindFacts::*fact) const;
  bool remembers() const { return has(&KindFacts::remembers); }
  /// Returns how many positions before a window matter.
  std::int64_t reach(std::int64_t streamed = 0) const;
  EnsembleModels models() const;
  bool wants_more(std::span<const std::int64_t> read) const;
  /// Returns the search of the first kind that searches.
  SearchPlan search() const;
  /// Returns the plan without entries of these texts, for sources that do not exclude them on their
  /// own.
  MemoryPlan without(const shard::Fingerprints& texts) const;
  /// Returns the names of the probability sources in the plan: vocabulary, then those of each kind.
  std::vector<std::string> names() const;
  /// Returns those of names() that models are not trained with.
  std::vector<std::string> given_names() const;
  void sign(const SayFact& say) const;
  /// Returns whether the joined masses are divided by their own sum: scores for a search, not
  /// probabilities.
  bool released() const { return !released_by.empty(); }
  /// Throws Error{usage} if released() is true.
  void expect_probabilities() const;
  /// Passes notes to `say` that concern scoring a text with these fingerprints.
  void notes(const shard::Fingerprints& texts, const char* what, const SayLine& say) const;
};

/// A model's open memories. They are opened once, even if the memories are planned several times: a
/// kind keeps what it opened as of<KIND's files>().
struct OpenMemories : Slots {
  std::map<std::string, EnsembleModels> models = {};  ///< by kind; see open_models()

  /// Resolves the options with plan_memory() and opens the files that are not open yet. Also throws
  /// the errors of opening.
  MemoryPlan plan(
      const MemoryOptions& options, const WindowPlan& windows, const model::Loaded& loaded);
};

/// Initial weight of a source whose weight is learned online.
inline constexpr double kFirstShare = 0.05;

/// Inputs of the planning.
struct PlanContext {
  const WindowPlan& windows;  ///< windows of the text; give the segment length if the model has
                              ///< none
  const nn::Model& model;
  const model::TrainingFacts& facts;
  OpenMemories& open;
  const model::Loaded* loaded = nullptr;  ///< null: nothing is opened, all of `open` is used
  bool online = false;                    ///< weights are learned online

  /// Returns the value of an unset weight: the initial one if learned online, else `constant`.
  double open_share(double constant) const { return online ? kFirstShare : constant; }
};

/// Resolves the options with the files that are open, and opens none (see OpenMemories). Throws
/// Error{usage} for options that contradict each other or the model, for chosen options of
/// sources that do not take part, and for --min-pointers with datastores that do not support it.
MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
    const nn::Model& model, const model::TrainingFacts& facts = {}, OpenMemories open = {});

/// Throws Error{usage} if memories join the softmax of one head while several passages each give a
/// softmax.
void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory);

/// Returns `asked` with unset and tunable options replaced by the plan's values: options that
/// resolve to an equal plan.
MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan);

}  // namespace infer
