#include "model/families/config_keys.h"

namespace model {
namespace {

struct ActivationName {
  const char *ours, *theirs;
};
constexpr std::array kActivations = {ActivationName{"gelu", "gelu_new"},
    ActivationName{"gelu", "gelu_pytorch_tanh"}, ActivationName{"gelu-exact", "gelu"},
    ActivationName{"relu", "relu"}, ActivationName{"silu", "silu"},
    ActivationName{"silu", "swish"}};

const core::Json& nothing() {
  static const core::Json none = core::Json::object();
  return none;
}

[[noreturn]] void wrong_type(const std::string& origin, const char* key) {
  core::bad_config("{}: \"{}\" has the wrong type", origin, key);
}

template <class T>
T value_or(const core::Json& object, const char* key, T otherwise, const std::string& origin) {
  if (!object.contains(key) || object[key].is_null()) return otherwise;
  // 64 bits without a sign would become a negative number.
  if (std::is_same_v<T, std::int64_t> && object[key].is_number_unsigned() &&
      object[key].get<std::uint64_t>() > INT64_MAX)
    wrong_type(origin, key);
  try {
    return core::get<T>(object, key, origin);
  } catch (const core::Error& error) { core::bad_config("{}", error.what()); }
}

template <class T>
std::vector<T> list_of(const core::Json& object, const char* key, const std::string& origin,
    bool (core::Json::*is_item)() const noexcept) {
  if (!object.contains(key) || object[key].is_null()) return {};
  const core::Json& list = object[key];
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), std::mem_fn(is_item)))
    wrong_type(origin, key);
  return list.get<std::vector<T>>();
}

constexpr std::int64_t kMostLayers = 1 << 14;  // more layers are refused elsewhere

}  // namespace

ConfigKeys::ConfigKeys(const core::Json& object, std::string origin)
    : object_(&object), origin_(std::move(origin)) {}

bool ConfigKeys::has(const char* key) const {
  return object_->contains(key) && !(*object_)[key].is_null();
}

bool ConfigKeys::is_null(const char* key) const {
  return object_->contains(key) && (*object_)[key].is_null();
}

double ConfigKeys::number(const char* key, double otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::int64_t ConfigKeys::whole(const char* key, std::int64_t otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::int64_t ConfigKeys::size(const char* key, std::int64_t otherwise) const {
  if (has(key) && whole(key, 1) == 0) unsupported(key, "0");
  return whole(key, otherwise);
}

bool ConfigKeys::truth(const char* key, bool otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::string ConfigKeys::text(const char* key, const std::string& otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::vector<std::string> ConfigKeys::texts(const char* key) const {
  return list_of<std::string>(*object_, key, origin_, &core::Json::is_string);
}

std::vector<std::int64_t> ConfigKeys::wholes(const char* key) const {
  return list_of<std::int64_t>(*object_, key, origin_, &core::Json::is_number_integer);
}

std::vector<double> ConfigKeys::numbers(const char* key) const {
  return list_of<double>(*object_, key, origin_, &core::Json::is_number);
}

std::vector<std::string> ConfigKeys::repeated_texts(const char* key) const {
  std::vector<std::string> all;
  if (!has(key)) return all;
  constexpr std::size_t kMost = 1 << 14;
  const auto expect = [&](bool holds) {
    if (!holds) wrong_type(origin_, key);
  };
  expect((*object_)[key].is_array());
  for (const auto& run : (*object_)[key]) {
    expect(run.is_array() && run.size() == 2 && run[0].is_array() && run[1].is_number_unsigned());
    const auto times = run[1].get<std::uint64_t>();
    for (std::uint64_t i = 0; i < times && !run[0].empty(); ++i)
      for (const auto& text : run[0]) {
        expect(text.is_string() && all.size() < kMost);
        all.push_back(text.get<std::string>());
      }
  }
  return all;
}

ConfigKeys ConfigKeys::object(const char* key) const {
  if (!has(key)) return {nothing(), origin_};
  if (!(*object_)[key].is_object()) wrong_type(origin_, key);
  return {(*object_)[key], origin_};
}

std::int64_t ConfigKeys::required(const char* key) const {
  if (!has(key)) core::bad_config("{}: has no \"{}\"", origin_, key);
  return whole(key, 0);
}

std::string ConfigKeys::activation(const char* key, const std::string& otherwise) const {
  const std::string theirs = text(key, otherwise);
  for (const auto& name : kActivations)
    if (theirs == name.theirs) return name.ours;
  unsupported(key, '"' + theirs + '"');
}

void ConfigKeys::expect(const char* key, bool otherwise, bool expected) const {
  if (truth(key, otherwise) != expected) unsupported(key, expected ? "false" : "true");
}

void ConfigKeys::unsupported(const char* key, const std::string& value) const {
  core::bad_config("{}: \"{}\": {} is not supported", origin_, key, value);
}

std::string their_activation(const std::string& ours) {
  for (const auto& name : kActivations)
    if (ours == name.ours) return name.theirs;
  core::bug("transformers has no name for the activation {}", ours);
}

std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers,
    std::int64_t window, const std::function<bool(std::int64_t)>& otherwise) {
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
