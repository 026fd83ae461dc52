#pragma once
// What a model's folder says of itself.

#include <string>

#include "core/json.h"

namespace model {

/// {"model", "arch", "family" (of one of transformers), "vocabulary", "parameters", "parts": {PART:
/// parameters}, "state": {"bytes", "bytes_per_token", "most_tokens" (of learned positions)} (what a
/// stream carries, nn::CarriedState in float32), "tensors", "files", "types": {TYPE: parameters}, "tokenizer", "tokens",
/// "tokenizer_fingerprint" (of one with a tokenizer), "fingerprint", "options": {...}, "trained":
/// {...} (of Tessera's own: every fact of its training)}. A part is a module of the model: the
/// embedding, the attention of all layers together. Weights are read, one at a time, only where no
/// fingerprint stands with them. Throws as load(), but does not verify digests.
core::OrderedJson describe_model(const std::string& folder);

/// Objects in it as members of their own: {"a": {"b": 1}} is {"a.b": 1}.
core::OrderedJson flattened(const core::OrderedJson& report);

}  // namespace model
