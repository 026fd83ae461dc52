#pragma once
// Common part of Llama's and Gemma's families: RMS norms, rotary embeddings, gated MLPs,
// grouped-query attention.

#include "model/families/family.h"

namespace model {

/// Reads what the row describes: shape, biases, windows, angles.
nn::ModelOptions gated_options(const ConfigKeys& keys, const ClassRow& row);
/// Writes the keys of what gated_options() reads, defaults too.
void put_gated(const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config);

/// Selects biases of these kinds only.
void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds);

/// Returns the locations of the weights; `norm1` and `norm2` are the names of ln_1 and ln_2.
std::vector<ModuleNames> gated_modules(std::string_view norm1, std::string_view norm2);

Family gated_family(
    std::string_view type, Family::Options options = gated_options, Family::Keys keys = put_gated);

}  // namespace model
