#pragma once
// How far a model's layers look back at test, where it is not as far as in training.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "nn/arch/model.h"

namespace infer {

/// Flags of the programs that read a text with a model; see nn::LayerReach and
/// nn::SlotBound.
struct LayerReachOptions {
  std::string layer_memory;
  std::int64_t clamp_length = -1;
  std::string same_length = "auto";
  std::int64_t context_slots = 0;
  std::string evict = "oldest";
  void fields(core::FieldList& f);

  /// Each to those of the models that have such memory. Throws Error{usage} for one that none of
  /// them has and for a value that makes no sense.
  void apply(const std::vector<nn::Model*>& models) const;
  /// What differs from training, for a figure's signature: "|layer-memory:..." or nothing.
  std::string signature() const;
};

}  // namespace infer
