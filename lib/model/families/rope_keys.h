#pragma once
// Rotary embeddings in a config.json of transformers versions 4 and 5.

#include "core/json.h"
#include "model/families/config_keys.h"
#include "nn/base/model_options.h"

namespace model {

/// Reads "rope_theta", "partial_rotary_factor", and "rope_scaling" or "rope_parameters". `context`:
/// original maximum positions if the scaling has none; `theta`, `share`: defaults of absent keys.
/// Throws Error{bad_config} that names an unsupported scaling.
nn::RopeOptions rope_of(const ConfigKeys& keys, std::int64_t context, double theta = 1e4,
                        double share = 1);

/// Returns Gemma 3's base of the angles in layers with a window. Throws the errors of rope_of().
double local_theta_of(const ConfigKeys& keys, double otherwise);

/// Returns Ministral 3's RopeOptions::query_growth.
double query_growth_of(const ConfigKeys& keys);

/// Writes the form of version 4, which both versions read.
void put_rope(const nn::RopeOptions& rope, core::OrderedJson& config);

}  // namespace model
