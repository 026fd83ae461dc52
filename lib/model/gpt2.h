#pragma once
// The GPT-2 of transformers: which models have its shape, its config.json, the names and layout of
// its weights.

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "core/json.h"
#include "nn/base/model_options.h"

namespace model {

/// True for a model whose function is that of GPT2LMHeadModel: learned positions, pre-norm with a
/// final norm, biases, a plain softmax.
bool is_gpt2_shaped(const nn::ModelOptions& options);

/// Keys that transformers reads. `end_of_document`: begins and ends a text; -1: none.
core::OrderedJson gpt2_config(const nn::ModelOptions& options, std::int64_t vocabulary,
                              std::int64_t end_of_document);

/// The options that transformers' keys stand for. Throws Error{bad_config} naming a key that is
/// missing, of a wrong type, or asks for something that is not supported.
nn::ModelOptions options_of_gpt2(const core::Json& config, const std::string& origin,
                                 std::int64_t* vocabulary);

/// True for the matrices that GPT-2 keeps as (in, out), where Tessera has (out, in).
bool is_transposed_in_gpt2(const std::string& name);

/// The name in a file for a weight of the model: with "transformer." as nn::Model has it, or bare
/// as on the hub.
std::string gpt2_name(const std::string& weight, bool bare);

/// True for a tensor that a GPT-2 file may hold and that is no weight: the triangular masks of
/// older versions.
bool is_gpt2_buffer(const std::string& name);

}  // namespace model
