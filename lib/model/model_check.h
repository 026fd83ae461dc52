#pragma once
// Checks all files of a model folder that programs read.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace model {

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
std::string check_models(const std::vector<std::string>& folders,
                         const std::function<void(const ModelVerdict&)>& found);

}  // namespace model
