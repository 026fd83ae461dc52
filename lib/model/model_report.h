#pragma once
// Describes a model folder.
// Checks all files of a model folder that programs read.

#include "core/hash.h"
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

/// Result of check_model() for a folder.
struct ModelVerdict {
  std::string folder;
  std::vector<std::string> faults;  ///< one line each
  std::size_t tensors = 0;          ///< the next three are set if there are no faults
  std::int64_t parameters = 0;
  core::Digest fingerprint;

  bool ok() const { return faults.empty(); }
  /// Returns {"model", "ok"}, then "tensors", "parameters" and "fingerprint", or "faults".
  core::OrderedJson json() const;
  std::string lines() const;  ///< readable form, one line each with a newline
};

/// Checks config.json, the tokenizer, every tensor, one at a time, and every checkpoint. Continues
/// after a fault with checks that do not depend on it. Throws only for errors that are not faults
/// of the folder: Error{no_input} for a path that is no model folder or is incomplete, Error{io}.
ModelVerdict check_model(const std::string& folder);
/// Checks each folder and passes the result to `found`. Returns the first fault and the number of
/// further ones; empty if there are none.
std::string check_models(
    const std::vector<std::string>& folders, const std::function<void(const ModelVerdict&)>& found);

}  // namespace model
