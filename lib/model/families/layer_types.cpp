#include "model/families/layer_types.h"

#include <algorithm>

namespace model {
namespace {

constexpr std::int64_t kMostLayers = 1 << 14;  // more layers are refused elsewhere

}  // namespace

std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers,
                                     std::int64_t window,
                                     const std::function<bool(std::int64_t)>& otherwise) {
  const auto types = keys.texts("layer_types");
  if (keys.has("layer_types") && std::ssize(types) != layers)
    keys.unsupported("layer_types", "a number of layers other than num_hidden_layers");
  std::vector<std::int64_t> windows;
  for (std::int64_t i = 0; i < std::min(layers, kMostLayers); ++i) {
    bool sliding = false;
    if (types.empty()) {
      sliding = otherwise(i);
    } else {
      const auto& type = types[static_cast<std::size_t>(i) % types.size()];
      if (type != kSlidingLayer && type != kFullLayer)
        keys.unsupported("layer_types", '"' + type + '"');
      sliding = type == kSlidingLayer;
    }
    if (sliding && window < 1) keys.unsupported("sliding_window", "an empty window");
    windows.push_back(sliding ? window : 0);
  }
  const bool same =
      std::adjacent_find(windows.begin(), windows.end(), std::not_equal_to<>()) == windows.end();
  if (same && !windows.empty()) windows.resize(windows[0] == 0 ? 0 : 1);
  return windows;
}

bool has_switched_windows(const ConfigKeys& keys, bool window) {
  if (keys.truth("use_sliding_window", false) && window) return true;
  const auto types = keys.texts("layer_types");
  if (std::find(types.begin(), types.end(), kSlidingLayer) != types.end())
    keys.unsupported("layer_types",
                     std::string(kSlidingLayer) + " without use_sliding_window and sliding_window");
  return false;
}

core::OrderedJson layer_types(const std::vector<std::int64_t>& windows, std::int64_t layers) {
  auto types = core::OrderedJson::array();
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool sliding =
        !windows.empty() && windows[static_cast<std::size_t>(i) % windows.size()] > 0;
    types.push_back(sliding ? kSlidingLayer : kFullLayer);
  }
  return types;
}

std::int64_t widest(const std::vector<std::int64_t>& windows) {
  return windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
}

}  // namespace model
