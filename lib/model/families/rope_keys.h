#pragma once
// Rotary positions in a config.json of transformers, as its fourth and its fifth version write
// them.

#include "core/json.h"
#include "model/families/config_keys.h"
#include "nn/base/model_options.h"

namespace model {

/// "rope_theta", "partial_rotary_factor", and "rope_scaling" or "rope_parameters". `context`: the
/// tokens of a row where the scaling does not say how many were trained; `theta`, `share`: where
/// the keys are absent. Throws Error{bad_config} naming a scaling that is not supported.
nn::RopeOptions rope_of(const ConfigKeys& keys, std::int64_t context, double theta = 1e4,
                        double share = 1);

/// Gemma 3's: the base of the angles in layers with a window. Throws as rope_of().
double local_theta_of(const ConfigKeys& keys, double otherwise);

/// Ministral 3's: RopeOptions::query_growth.
double query_growth_of(const ConfigKeys& keys);

/// In the fourth version's form, which both read.
void put_rope(const nn::RopeOptions& rope, core::OrderedJson& config);

}  // namespace model
