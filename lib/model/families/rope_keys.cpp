#include "model/families/rope_keys.h"

#include <cmath>

#include "model/families/layer_types.h"
#include "nn/layers/positions.h"

namespace model {
namespace {

constexpr const char* kLocalTheta = "rope_local_base_freq";
constexpr const char* kQueryGrowth = "llama_4_scaling_beta";

// Returns yarn's factor of rotated queries and keys if no key gives it. If two non-zero weights of
// its logarithm are given, it is their quotient (DeepSeek-V2).
double yarn_length(const ConfigKeys& scaling, double factor) {
  const auto of = [&](double weight) { return 1 + weight * std::log(factor) / 10; };
  const double above = scaling.number("mscale", 0), below = scaling.number("mscale_all_dim", 0);
  return above != 0 && below != 0 ? of(above) / of(below) : of(1);
}

// Reads LongRoPE (Ding et al. 2024). If no key gives the factor of rotated queries and keys, it
// follows from the ratio of the longest row to the trained length.
void read_longrope(const ConfigKeys& scaling, std::int64_t context, nn::RopeOptions& rope) {
  const double times =
      scaling.number("factor", static_cast<double>(context) / static_cast<double>(rope.trained));
  const double usual =
      times > 1 ? std::sqrt(1 + std::log(times) / std::log(static_cast<double>(rope.trained))) : 1;
  const double length = scaling.number("attention_factor", usual);
  if (length <= 0) scaling.unsupported("attention_factor", "a number that is not positive");
  rope.length = length == 1 ? 0 : length;
  rope.factors = scaling.numbers("short_factor");
  rope.long_factors = scaling.numbers("long_factor");
}

}  // namespace

double query_growth_of(const ConfigKeys& keys) {
  const char* const name = keys.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  return keys.object(name).number(kQueryGrowth, 0);
}

double local_theta_of(const ConfigKeys& keys, double otherwise) {
  const ConfigKeys local = keys.object("rope_parameters").object(kSlidingLayer);
  if (local.text("rope_type", "default") != "default")
    keys.unsupported("rope_parameters", "rope scaling in layers with a window");
  return local.number("rope_theta", keys.number(kLocalTheta, otherwise));
}

nn::RopeOptions rope_of(const ConfigKeys& keys, std::int64_t context, double theta, double share) {
  const char* const name = keys.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const ConfigKeys all = keys.object(name);
  const ConfigKeys scaling = all.has(kFullLayer) ? all.object(kFullLayer) : all;
  nn::RopeOptions rope;
  rope.theta = scaling.number("rope_theta", keys.number("rope_theta", theta));
  rope.share = scaling.number("partial_rotary_factor", keys.number("partial_rotary_factor", share));
  auto type = scaling.text("rope_type", scaling.text("type", "default"));
  if (type == "su") type = "longrope";  // the name in Phi-3's first files
  if (type == "default") return rope;
  if (type != "linear" && type != "dynamic" && type != "llama3" && type != "yarn" &&
      type != "longrope")
    keys.unsupported(name, "type \"" + type + "\"");
  rope.scaling = type;
  if (type != "longrope") {
    if (!scaling.has("factor")) keys.unsupported(name, "type \"" + type + "\" without \"factor\"");
    rope.factor = scaling.number("factor", rope.factor);
  }
  if (type == "linear") return rope;
  if (type == "dynamic") {
    rope.trained = context;  // transformers uses no other length
    return rope;
  }
  rope.trained = scaling.whole("original_max_position_embeddings",
                               keys.whole("original_max_position_embeddings", context));
  if (rope.trained < 1) keys.unsupported("original_max_position_embeddings", "a number below 1");
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
  if (length <= 0) keys.unsupported(name, "an attention_factor that is not positive");
  if (std::abs(length - usual) > 1e-6) rope.length = length;
  scaling.expect("truncate", true, true);
  return rope;
}

void put_rope(const nn::RopeOptions& rope, core::OrderedJson& config) {
  config["rope_theta"] = rope.theta;
  if (rope.local_theta > 0) config[kLocalTheta] = rope.local_theta;
  if (rope.share != 1) config["partial_rotary_factor"] = rope.share;
  core::OrderedJson scaling;
  if (rope.scaling != "none") {
    scaling["rope_type"] = rope.scaling;
    if (rope.scaling != "longrope") scaling["factor"] = rope.factor;
  }
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
  if (rope.query_growth > 0) scaling[kQueryGrowth] = rope.query_growth;
  if (rope.scaling == "llama3" || rope.scaling == "yarn" || rope.scaling == "longrope")
    scaling["original_max_position_embeddings"] = rope.trained;
  config["rope_scaling"] = scaling;
}

}  // namespace model
