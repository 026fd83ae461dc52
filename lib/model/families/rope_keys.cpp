#include "model/families/rope_keys.h"

#include "nn/layers/positions.h"

namespace model {
namespace {

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

  bool has(const char* key) const { return first_.has(key) || second_.has(key); }
  double number(const char* key, double otherwise) const {
    return first_.number(key, second_.number(key, otherwise));
  }
  std::int64_t whole(const char* key, std::int64_t otherwise) const {
    return first_.whole(key, second_.whole(key, otherwise));
  }
  std::vector<double> numbers(const char* key) const {
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

}  // namespace

void read_query_growth(const ConfigKeys& keys, nn::RopeOptions& rope) {
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

double local_theta_of(const ConfigKeys& keys, const ClassRow& row) {
  const ConfigKeys local = keys.object(kParameters).object(kSlidingLayer);
  if (local.text("rope_type", local.text("type", "default")) != "default")
    keys.unsupported(kParameters, "rope scaling in layers with a window");
  const double otherwise =
      row.local_key != nullptr ? keys.number(row.local_key, row.local_theta) : row.local_theta;
  return local.number("rope_theta", otherwise);
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
  if (row.local_key != nullptr) config[row.local_key] = local["rope_theta"];
  config[kParameters] = {{kSlidingLayer, local}, {kFullLayer, full}};
}

void put_query_growth(const nn::RopeOptions& rope, core::OrderedJson& config) {
  auto& scaling = config[kScaling];
  if (scaling.is_null()) scaling["rope_type"] = "default";
  scaling[kQueryGrowth] = rope.query_growth;
  scaling[kTrained] = rope.trained;
}

}  // namespace model
