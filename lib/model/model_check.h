#pragma once
// Checks all that a program would read of a model's folder.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace model {

/// What check_model() found of a folder.
struct ModelVerdict {
  std::string folder;
  std::vector<std::string> faults;  ///< a line each
  std::size_t tensors = 0;          ///< these three where it is whole
  std::int64_t parameters = 0;
  core::Digest fingerprint;

  bool ok() const { return faults.empty(); }
  /// {"model", "ok"}, then "tensors", "parameters" and "fingerprint", or "faults".
  core::OrderedJson json() const;
  std::string lines() const;  ///< the same for the eye, each with a newline
};

/// Reads config.json, the tokenizer, every tensor, one at a time, and every checkpoint. Goes on
/// after a fault as far as what follows does not depend on it. Throws only what is not the folder's
/// fault: Error{no_input} if it is no model folder or not complete yet, Error{io}.
ModelVerdict check_model(const std::string& folder);
/// Checks each and tells `found` of it. Returns the first fault and how many more there are;
/// nothing where all is right.
std::string check_models(const std::vector<std::string>& folders,
                         const std::function<void(const ModelVerdict&)>& found);

}  // namespace model
