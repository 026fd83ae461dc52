#pragma once
// "layer_types" of a transformers config.json: layers with sliding-window or full attention.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/json.h"
#include "model/families/config_keys.h"

namespace model {

inline constexpr const char* kSlidingLayer = "sliding_attention";
inline constexpr const char* kFullLayer = "full_attention";

/// Returns TransformerOptions::attention_window: `window` for layers with sliding attention, 0 for
/// layers with full attention; if "layer_types" is absent, `otherwise(i)` says whether layer i
/// slides. Throws Error{bad_config} for another type.
std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers,
                                     std::int64_t window,
                                     const std::function<bool(std::int64_t)>& otherwise);

/// Returns whether "use_sliding_window" is true and there is a window. Throws Error{bad_config} if
/// not and "layer_types" has sliding attention: some ways to compute attention apply it then.
bool has_switched_windows(const ConfigKeys& keys, bool window);

/// Returns the "layer_types" of `layers` layers.
core::OrderedJson layer_types(const std::vector<std::int64_t>& windows, std::int64_t layers);

/// Returns the widest window; 0: no layer has one.
std::int64_t widest(const std::vector<std::int64_t>& windows);

}  // namespace model
