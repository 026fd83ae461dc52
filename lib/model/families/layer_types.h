#pragma once
// "layer_types" of a config.json of transformers: which layers see a window, and which all.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/json.h"
#include "model/families/config_keys.h"

namespace model {

inline constexpr const char* kSlidingLayer = "sliding_attention";
inline constexpr const char* kFullLayer = "full_attention";

/// As TransformerOptions::attention_window: `window` for the layers that "layer_types" calls
/// sliding, 0 for those that it calls full; where it is absent `otherwise(i)` says whether layer i
/// slides. Throws Error{bad_config} for another type.
std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers,
                                     std::int64_t window,
                                     const std::function<bool(std::int64_t)>& otherwise);

/// "layer_types" of so many layers.
core::OrderedJson layer_types(const std::vector<std::int64_t>& windows, std::int64_t layers);

/// The widest; 0: all layers see all.
std::int64_t widest(const std::vector<std::int64_t>& windows);

}  // namespace model
