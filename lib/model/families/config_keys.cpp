#include "model/families/config_keys.h"

#include "nn/layers/positions.h"

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

[[noreturn]] void wrong_type(const std::string& origin, const std::string& key) {
  core::bad_config("{}: \"{}\" has the wrong type", origin, key);
}

template <class T>
T value_or(
    const core::Json& object, const std::string& key, T otherwise, const std::string& origin) {
  if (!object.contains(key) || object[key].is_null()) return otherwise;
  // 64 bits without a sign would become a negative number.
  if (std::is_same_v<T, std::int64_t> && object[key].is_number_unsigned() &&
      object[key].get<std::uint64_t>() > INT64_MAX)
    wrong_type(origin, key);
  try {
    return core::get<T>(object, key.c_str(), origin);
  } catch (const core::Error& error) { core::bad_config("{}", error.what()); }
}

template <class T>
std::vector<T> list_of(const core::Json& object, const std::string& key, const std::string& origin,
    bool (core::Json::*is_item)() const noexcept) {
  if (!object.contains(key) || object[key].is_null()) return {};
  const core::Json& list = object[key];
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), std::mem_fn(is_item)))
    wrong_type(origin, key);
  return list.get<std::vector<T>>();
}

constexpr std::int64_t kMostLayers = 1 << 14;  // more layers are refused elsewhere

constexpr const char* kScaling = "rope_scaling";
constexpr const char* kParameters = "rope_parameters";
constexpr const char* kTrained = "original_max_position_embeddings";
constexpr const char* kQueryGrowth = "llama_4_scaling_beta";

// Returns the object that a class without angles by kind of layer reads: that of version 4 goes
// before that of version 5.
const char* name_of(const ConfigKeys& keys) {
  return keys.object(kScaling).empty() ? kParameters : kScaling;
}

// The keys of the rotary angles in layers without a window. Those of the first object go before
// those of the second.
class RopeKeys {
 public:
  RopeKeys(const ConfigKeys& keys, const ClassRow& row)
      : keys_(keys), name_(name_of(keys)),
        first_(keys.object(row.angles == Angles::by_kind ? kScaling : name_)),
        second_(keys.object(kParameters).object(kFullLayer)) {
    const ConfigKeys parameters = keys.object(kParameters);
    if (row.angles != Angles::by_kind) {
      if (first_.has(kFullLayer) || first_.has(kSlidingLayer))
        unsupported("other angles in some layers");
      second_ = first_;
    } else if (!parameters.empty() && second_.empty()) {
      unsupported(fmt::format("an object without \"{}\"", kFullLayer));
    }
  }

  bool has(const std::string& key) const { return first_.has(key) || second_.has(key); }
  double number(const std::string& key, double otherwise) const {
    return first_.number(key, second_.number(key, otherwise));
  }
  std::int64_t whole(const std::string& key, std::int64_t otherwise) const {
    return first_.whole(key, second_.whole(key, otherwise));
  }
  std::vector<double> numbers(const std::string& key) const {
    return first_.has(key) ? first_.numbers(key) : second_.numbers(key);
  }
  // A class with angles by kind fills in "rope_type" before it reads version 4's "type".
  std::string type() const {
    return first_.text("rope_type", second_.text("rope_type", second_.text("type", "default")));
  }
  bool truncates() const { return first_.truth("truncate", second_.truth("truncate", true)); }
  [[noreturn]] void unsupported(const std::string& what) const { keys_.unsupported(name_, what); }

 private:
  const ConfigKeys& keys_;
  const char* name_;
  ConfigKeys first_, second_;
};

// Returns yarn's factor of rotated queries and keys if no key gives it. If two non-zero weights of
// its logarithm are given, it is their quotient (DeepSeek-V2).
double yarn_length(const RopeKeys& scaling, double factor) {
  const auto of = [&](double weight) { return 1 + weight * std::log(factor) / 10; };
  const double above = scaling.number("mscale", 0), below = scaling.number("mscale_all_dim", 0);
  return above != 0 && below != 0 ? of(above) / of(below) : of(1);
}

// Reads LongRoPE (Ding et al. 2024). If no key gives the factor of rotated queries and keys, it
// follows from the ratio of the longest row to the trained length.
void read_longrope(const RopeKeys& scaling, std::int64_t context, nn::RopeOptions& rope) {
  const double times =
      scaling.number("factor", static_cast<double>(context) / static_cast<double>(rope.trained));
  const double usual =
      times > 1 ? std::sqrt(1 + std::log(times) / std::log(static_cast<double>(rope.trained))) : 1;
  const double length = scaling.number("attention_factor", usual);
  if (length <= 0) scaling.unsupported("an attention_factor that is not positive");
  rope.length = length == 1 ? 0 : length;
  rope.factors = scaling.numbers("short_factor");
  rope.long_factors = scaling.numbers("long_factor");
}

// Returns the rotated fraction of a head. Classes that rotate whole heads ignore the key without
// scaling, and fail with it.
double share_of(
    const ConfigKeys& keys, const ClassRow& row, const RopeKeys& scaling, const std::string& type) {
  const double asked =
      scaling.number("partial_rotary_factor", keys.number(row.share_key, row.share));
  if (row.angles == Angles::partial) return asked;
  if (asked != 1 && type != "default")
    keys.unsupported("partial_rotary_factor", fmt::format("{} with scaling \"{}\"", asked, type));
  return 1;
}

std::int64_t trained_of(
    const ConfigKeys& keys, const ClassRow& row, const RopeKeys& scaling, std::int64_t context) {
  const auto trained = row.trained > 0 ? row.trained : scaling.whole(kTrained, context);
  return row.angles == Angles::by_kind ? trained : keys.whole(kTrained, trained);
}

core::OrderedJson scaling_of(const nn::RopeOptions& rope) {
  core::OrderedJson scaling;
  if (rope.scaling == "none") return scaling;
  scaling["rope_type"] = rope.scaling;
  if (rope.scaling != "longrope") scaling["factor"] = rope.factor;
  if (rope.scaling == "llama3") {
    scaling["low_freq_factor"] = rope.low;
    scaling["high_freq_factor"] = rope.high;
  }
  if (rope.scaling == "yarn") {
    scaling["beta_slow"] = rope.slow_beta;
    scaling["beta_fast"] = rope.fast_beta;
    if (rope.length > 0) scaling["attention_factor"] = rope.length;
  }
  if (rope.scaling == "longrope") {
    scaling["short_factor"] = rope.factors;
    scaling["long_factor"] = rope.long_factors;
    scaling["attention_factor"] = nn::rope_attention_factor(rope);
  }
  if (rope.scaling == "llama3" || rope.scaling == "yarn" || rope.scaling == "longrope")
    scaling[kTrained] = rope.trained;
  return scaling;
}

nn::RopeOptions rope_of(const ConfigKeys& keys, const ClassRow& row, std::int64_t context) {
  const RopeKeys scaling(keys, row);
  nn::RopeOptions rope;
  rope.theta = scaling.number("rope_theta", keys.number(row.theta_key, row.theta));
  auto type = scaling.type();
  if (row.only_longrope && type == "su") type = "longrope";  // the name in Phi-3's first files
  rope.share = share_of(keys, row, scaling, type);
  if (type == "default") return rope;
  const bool known = type == "linear" || type == "dynamic" || type == "llama3" || type == "yarn";
  if (type != "longrope" && (!known || row.only_longrope))
    scaling.unsupported("type \"" + type + "\"");
  rope.scaling = type;
  if (type != "longrope") {
    if (!scaling.has("factor")) scaling.unsupported("type \"" + type + "\" without \"factor\"");
    rope.factor = scaling.number("factor", rope.factor);
  }
  if (type == "linear") return rope;
  if (type == "dynamic") {
    rope.trained = context;  // transformers uses no other length
    return rope;
  }
  rope.trained = trained_of(keys, row, scaling, context);
  if (rope.trained < 1) keys.unsupported(kTrained, "a number below 1");
  if (type == "longrope") {
    read_longrope(scaling, context, rope);
    return rope;
  }
  if (type == "llama3") {
    rope.low = scaling.number("low_freq_factor", rope.low);
    rope.high = scaling.number("high_freq_factor", rope.high);
    return rope;
  }
  rope.slow_beta = scaling.number("beta_slow", rope.slow_beta);
  rope.fast_beta = scaling.number("beta_fast", rope.fast_beta);
  const double usual = 1 + std::log(rope.factor) / 10;
  const double length = scaling.number("attention_factor", yarn_length(scaling, rope.factor));
  if (length <= 0) scaling.unsupported("an attention_factor that is not positive");
  if (std::abs(length - usual) > 1e-6) rope.length = length;
  if (!scaling.truncates()) scaling.unsupported("\"truncate\": false");
  return rope;
}

void put_rope(
    const nn::TransformerOptions& options, const ClassRow& row, core::OrderedJson& config) {
  const auto& rope = options.rope;
  config[row.theta_key] = rope.theta;
  if (row.angles == Angles::partial && (rope.share != 1 || row.share != 1))
    config[row.share_key] = rope.share;
  const auto scaling = scaling_of(rope);
  config[kScaling] = scaling;
  if (row.angles != Angles::by_kind) return;
  core::OrderedJson full = scaling, local;
  if (full.is_null()) full["rope_type"] = "default";
  full["rope_theta"] = rope.theta;
  if (rope.local_theta == 0 && widest(options.attention_window) > 0) {
    local = full;
  } else {
    local["rope_type"] = "default";
    local["rope_theta"] = rope.local_theta > 0 ? rope.local_theta : rope.theta;
  }
  if (!row.local_key.empty()) config[row.local_key] = local["rope_theta"];
  config[kParameters] = {{kSlidingLayer, local}, {kFullLayer, full}};
}

}  // namespace

ConfigKeys::ConfigKeys(const core::Json& object, std::string origin)
    : object_(&object), origin_(std::move(origin)) {}

bool ConfigKeys::has(const std::string& key) const {
  return object_->contains(key) && !(*object_)[key].is_null();
}

bool ConfigKeys::is_null(const std::string& key) const {
  return object_->contains(key) && (*object_)[key].is_null();
}

double ConfigKeys::number(const std::string& key, double otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::int64_t ConfigKeys::whole(const std::string& key, std::int64_t otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::int64_t ConfigKeys::size(const std::string& key, std::int64_t otherwise) const {
  if (has(key) && whole(key, 1) == 0) unsupported(key, "0");
  return whole(key, otherwise);
}

bool ConfigKeys::truth(const std::string& key, bool otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::string ConfigKeys::text(const std::string& key, const std::string& otherwise) const {
  return value_or(*object_, key, otherwise, origin_);
}

std::vector<std::string> ConfigKeys::texts(const std::string& key) const {
  return list_of<std::string>(*object_, key, origin_, &core::Json::is_string);
}

std::vector<std::int64_t> ConfigKeys::wholes(const std::string& key) const {
  return list_of<std::int64_t>(*object_, key, origin_, &core::Json::is_number_integer);
}

std::vector<double> ConfigKeys::numbers(const std::string& key) const {
  return list_of<double>(*object_, key, origin_, &core::Json::is_number);
}

std::vector<std::string> ConfigKeys::repeated_texts(const std::string& key) const {
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

ConfigKeys ConfigKeys::object(const std::string& key) const {
  if (!has(key)) return {nothing(), origin_};
  if (!(*object_)[key].is_object()) wrong_type(origin_, key);
  return {(*object_)[key], origin_};
}

core::Json ConfigKeys::value(const std::string& key) const {
  return has(key) ? (*object_)[key] : core::Json();
}

std::int64_t ConfigKeys::required(const std::string& key) const {
  if (!has(key)) core::bad_config("{}: has no \"{}\"", origin_, key);
  return whole(key, 0);
}

std::string ConfigKeys::activation(const std::string& key, const std::string& otherwise) const {
  const std::string theirs = text(key, otherwise);
  if (auto* name = core::find_by(kActivations, theirs, &ActivationName::theirs)) return name->ours;
  unsupported(key, '"' + theirs + '"');
}

void ConfigKeys::expect(const std::string& key, bool expected) const {
  if (truth(key, expected) != expected) unsupported(key, expected ? "false" : "true");
}

void ConfigKeys::unsupported(const std::string& key, const std::string& value) const {
  core::bad_config("{}: \"{}\": {} is not supported", origin_, key, value);
}

void ConfigPairs::required(const std::string& key, std::int64_t& option) const {
  if (from != nullptr) from->required(key);
  (*this)(key, option, 0);
}

void ConfigPairs::size(const std::string& key, std::int64_t& option, std::int64_t otherwise) const {
  if (from != nullptr) from->size(key, otherwise);
  (*this)(key, option, otherwise);
}

void ConfigPairs::activation(
    const std::string& key, std::string& option, const std::string& otherwise) const {
  if (to != nullptr) (*to)[key] = their_activation(option);
  else option = from->activation(key, otherwise);
}

void ConfigPairs::fixed(const std::string& key, bool value) const {
  if (to != nullptr) (*to)[key] = value;
  else from->expect(key, value);
}

std::string their_activation(const std::string& ours) {
  if (auto* name = core::find_by(kActivations, ours, &ActivationName::ours)) return name->theirs;
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
  if (core::contains(types, kSlidingLayer))
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

double local_theta_of(const ConfigKeys& keys, const ClassRow& row) {
  const ConfigKeys local = keys.object(kParameters).object(kSlidingLayer);
  if (local.text("rope_type", local.text("type", "default")) != "default")
    keys.unsupported(kParameters, "rope scaling in layers with a window");
  const double otherwise =
      !row.local_key.empty() ? keys.number(row.local_key, row.local_theta) : row.local_theta;
  return local.number("rope_theta", otherwise);
}

void rope_keys(const ConfigPairs& pairs, nn::TransformerOptions& options, const ClassRow& row) {
  if (pairs.to != nullptr) return put_rope(options, row, *pairs.to);
  options.positions = "rope";
  options.rope = rope_of(*pairs.from, row, options.context);
}

void query_growth_keys(const ConfigPairs& pairs, nn::RopeOptions& rope) {
  if (pairs.to != nullptr) {
    auto& scaling = (*pairs.to)[kScaling];
    if (scaling.is_null()) scaling["rope_type"] = "default";
    scaling[kQueryGrowth] = rope.query_growth;
    scaling[kTrained] = rope.trained;
    return;
  }
  const ConfigKeys& keys = *pairs.from;
  const char* const name = name_of(keys);
  const ConfigKeys scaling = keys.object(name);
  for (const char* key : {kQueryGrowth, kTrained})
    if (!scaling.has(key)) keys.unsupported(name, fmt::format("an object without \"{}\"", key));
  rope.query_growth = scaling.number(kQueryGrowth, 0);
  const auto trained = scaling.whole(kTrained, 0);
  const bool uses = rope.scaling != "none" && rope.scaling != "linear";
  if (trained < 1 || (uses && trained != rope.trained))
    keys.unsupported(kTrained, std::to_string(trained));
  rope.trained = trained;
}

}  // namespace model
