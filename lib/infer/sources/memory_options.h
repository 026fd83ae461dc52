#pragma once
// Options of memories at test time.
// Container of values by type, for what each kind of source keeps among options, in a plan and
// open.

#include <any>
#include <typeindex>

#include "infer/sources/memory_weight.h"

namespace infer {

/// Holds one value of each type and creates it on first access. A copy copies all values.
/// References remain valid as long as the Slots.
class Slots {
 public:
  template <class T> T& of() {
    std::any& held = held_[typeid(T)];
    if (!held.has_value()) held = T{};
    return *std::any_cast<T>(&held);
  }
  /// Returns the value, or T{} if absent.
  template <class T> const T& of() const {
    static const T none{};
    const auto held = held_.find(typeid(T));
    return held == held_.end() ? none : *std::any_cast<T>(&held->second);
  }

 private:
  std::map<std::type_index, std::any> held_;
};

/// Selects the memories at test time and their interpolation with the head; source_kinds.h has the
/// formula. Each kind of source keeps its options here as of<KIND's options>(). A MemoryPlan is the
/// resolved form for a model.
///
/// If a source has no entries yet, its weight is added to p_joint. A weight `gate` depends on the
/// token: see Gate. Unset weights are learned online from the tokens seen so far (weights = online;
/// see OnlineWeights), or have the constants of their kinds.
struct MemoryOptions : Slots {
  /// Temperature that divides the scores of the parts of the joint softmax. 0: the calibrated or
  /// training temperature of the model (model::test_temperature).
  double joint_temperature = 0;
  /// "online", "constant" or "auto" (online if no weight is given or tuned).
  std::string weights = "auto";
  bool in_parts = false;          ///< a text is scored in parts: "auto" is constant
  bool answers = false;           ///< generates texts: a kind may have other weights for these
  bool weights_follow = false;    ///< online weights also learn from tokens that the model samples
  std::vector<std::string> gate;  ///< fitted gates as texts: see Gate
  std::string tuned_on;  ///< fingerprint of the data on which the parameters were tuned, for the
                         ///< signature
  /// Names of the options that must have a use: plan_memory() refuses those of sources that do not
  /// take part.
  std::set<std::string> chosen;
  /// Sets `chosen` to `flags` and, unless a tuned file gave options, which may be of sources that
  /// are left out now, to all options that are not at their defaults.
  void choose(const std::set<std::string>& flags);
  /// Lists the options of each of source_kinds(), then the common ones.
  void fields(core::FieldList& f);
};

}  // namespace infer
