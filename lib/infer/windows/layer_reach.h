#pragma once
// Options that change how far a model's layers look back at test time.

#include "nn/arch/model.h"

namespace infer {

/// Options of programs that read a text with a model; see nn::LayerReach and nn::SlotBound.
struct LayerReachOptions {
  std::string layer_memory;
  std::int64_t clamp_length = -1;
  std::string same_length = "auto";
  std::int64_t context_slots = 0;
  std::string evict = "oldest";
  void fields(core::FieldList& f);

  /// Applies each option to the models that support it. Throws Error{usage} for an option that no
  /// model supports and for an invalid value.
  void apply(const std::vector<nn::Model*>& models) const;
  /// Returns the differences from training for a result's signature: "|layer-memory:..." or "".
  std::string signature() const;
};

}  // namespace infer
