#pragma once
// Reads keys of a transformers config.json, with defaults for absent or null keys.
// "layer_types" of a transformers config.json: layers with sliding-window or full attention.
// Rotary embeddings in a config.json of transformers versions 4 and 5.

#include "model/families/class_row.h"
#include "nn/base/model_options.h"

namespace model {

/// A config.json object, which must outlive this. All member functions throw Error{bad_config} with
/// origin and key.
class ConfigKeys {
 public:
  ConfigKeys(const core::Json& object, std::string origin);

  const std::string& origin() const { return origin_; }
  bool has(const std::string& key) const;      ///< present and not null
  bool is_null(const std::string& key) const;  ///< present and null
  bool empty() const { return object_->empty(); }
  double number(const std::string& key, double otherwise) const;
  std::int64_t whole(const std::string& key, std::int64_t otherwise) const;
  /// Behaves like whole(), and refuses 0, which nn's options would take for "not set".
  std::int64_t size(const std::string& key, std::int64_t otherwise) const;
  bool truth(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::vector<std::string> texts(const std::string& key) const;  ///< empty: absent
  /// Flattens [[["a", "b"], 2], ...] to "a", "b", "a", "b", ...; empty: absent.
  std::vector<std::string> repeated_texts(const std::string& key) const;
  std::vector<std::int64_t> wholes(const std::string& key) const;  ///< empty: absent
  std::vector<double> numbers(const std::string& key) const;       ///< empty: absent
  ConfigKeys object(const std::string& key) const;                 ///< empty: absent
  core::Json value(const std::string& key) const;                  ///< null: absent
  std::int64_t required(const std::string& key) const;
  /// Returns nn's name for an activation.
  std::string activation(const std::string& key, const std::string& otherwise) const;
  /// Checks a switch that affects the model's function, and must be absent or `expected`.
  void expect(const std::string& key, bool expected) const;
  [[noreturn]] void unsupported(const std::string& key, const std::string& value) const;

 private:
  const core::Json* object_;
  std::string origin_;
};

/// Reads options from a config.json, or writes them to one: a family lists its keys once for both.
/// Absent keys are read as `otherwise`; reading throws the errors of ConfigKeys.
class ConfigPairs {
 public:
  explicit ConfigPairs(const ConfigKeys& keys) : from(&keys) {}
  explicit ConfigPairs(core::OrderedJson& config) : to(&config) {}

  template <class T>
  void operator()(const std::string& key, T& option, std::type_identity_t<T> otherwise) const {
    if (to != nullptr) (*to)[key] = option;
    else if constexpr (std::is_same_v<T, bool>) option = from->truth(key, otherwise);
    else if constexpr (std::is_same_v<T, double>) option = from->number(key, otherwise);
    else option = from->whole(key, otherwise);
  }
  void required(const std::string& key, std::int64_t& option) const;
  void size(const std::string& key, std::int64_t& option, std::int64_t otherwise) const;
  void activation(const std::string& key, std::string& option, const std::string& otherwise) const;
  /// A switch that has one supported value.
  void fixed(const std::string& key, bool value) const;

  const ConfigKeys* const from = nullptr;  ///< null: the keys are written
  core::OrderedJson* const to = nullptr;   ///< null: the keys are read
};

/// Returns transformers' name for one of nn's activations.
std::string their_activation(const std::string& ours);

inline constexpr const char* kSlidingLayer = "sliding_attention";
inline constexpr const char* kFullLayer = "full_attention";

/// Returns TransformerOptions::attention_window: `window` for layers with sliding attention, 0 for
/// layers with full attention; if "layer_types" is absent, `otherwise(i)` says whether layer i
/// slides. Throws Error{bad_config} for another type.
std::vector<std::int64_t> windows_of(const ConfigKeys& keys, std::int64_t layers,
    std::int64_t window, const std::function<bool(std::int64_t)>& otherwise);

/// Returns whether "use_sliding_window" is true and there is a window. Throws Error{bad_config} if
/// not and "layer_types" has sliding attention: some ways to compute attention apply it then.
bool has_switched_windows(const ConfigKeys& keys, bool window);

/// Returns the "layer_types" of `layers` layers.
core::OrderedJson layer_types(const std::vector<std::int64_t>& windows, std::int64_t layers);

/// Returns the widest window; 0: no layer has one.
std::int64_t widest(const std::vector<std::int64_t>& windows);

/// Returns the base of the angles in layers with a window, for a class with Angles::by_kind. Throws
/// the errors of rope_keys().
double local_theta_of(const ConfigKeys& keys, const ClassRow& row);

/// Reads what the class computes of "rope_theta", "partial_rotary_factor", and "rope_scaling" or
/// "rope_parameters", but for the angles in layers with a window. If no key gives the original
/// maximum positions, they are options.context. Throws Error{bad_config} that names an unsupported
/// scaling. Writes the form of version 4, which both versions read, and for Angles::by_kind also
/// that of version 5.
void rope_keys(const ConfigPairs& pairs, nn::TransformerOptions& options, const ClassRow& row);
/// Ministral 3's RopeOptions::query_growth and the positions from which queries grow, after
/// rope_keys().
void query_growth_keys(const ConfigPairs& pairs, nn::RopeOptions& rope);

}  // namespace model
