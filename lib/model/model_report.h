#pragma once
// Describes a model folder.

#include <string>

#include "core/json.h"

namespace model {

/// Returns {"model", "arch", "family" (transformers), "vocabulary", "parameters",
/// "active_parameters" (with experts: those that a token uses), "parts": {PART: parameters},
/// "state": {"bytes", "bytes_per_token", "most_tokens" (learned positions)} (carried by a stream,
/// nn::CarriedState in float32), "tensors", "files", "types": {TYPE: parameters}, "tokenizer",
/// "tokens", "tokenizer_fingerprint" (with a tokenizer), "fingerprint", "options": {...},
/// "trained": {...} (all training facts of a Tessera model)}. A part is a kind of module: the
/// embedding, the attention of all layers. Reads weights, one at a time, only if no fingerprint is
/// recorded. Throws the errors of load(), but does not verify digests.
core::OrderedJson describe_model(const std::string& folder);

/// Flattens nested objects: {"a": {"b": 1}} becomes {"a.b": 1}.
core::OrderedJson flattened(const core::OrderedJson& report);

}  // namespace model
