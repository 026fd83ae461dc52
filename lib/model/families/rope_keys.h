#pragma once
// Rotary embeddings in a config.json of transformers versions 4 and 5.

#include "model/families/class_row.h"
#include "model/families/config_keys.h"
#include "nn/base/model_options.h"

namespace model {

/// Reads what the class computes of "rope_theta", "partial_rotary_factor", and "rope_scaling" or
/// "rope_parameters", but for the angles in layers with a window. `context`: original maximum
/// positions if no key gives them. Throws Error{bad_config} that names an unsupported scaling.
nn::RopeOptions rope_of(const ConfigKeys& keys, const ClassRow& row, std::int64_t context);

/// Returns the base of the angles in layers with a window, for a class with Angles::by_kind. Throws
/// the errors of rope_of().
double local_theta_of(const ConfigKeys& keys, const ClassRow& row);

/// Sets Ministral 3's RopeOptions::query_growth and the positions from which queries grow.
void read_query_growth(const ConfigKeys& keys, nn::RopeOptions& rope);

/// Writes the form of version 4, which both versions read, and for Angles::by_kind also that of
/// version 5.
void put_rope(
    const nn::TransformerOptions& options, const ClassRow& row, core::OrderedJson& config);
/// Writes Ministral 3's growth of queries, after put_rope().
void put_query_growth(const nn::RopeOptions& rope, core::OrderedJson& config);

}  // namespace model
