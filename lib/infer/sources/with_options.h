#pragma once
// Which further models take part at test time, and with what share.

#include <string>
#include <vector>

#include "core/options.h"

namespace infer {

/// A model that is mixed in: its folder and what it gives of the mixture.
struct WithShare {
  std::string folder;
  double lambda = 0;
  bool gated = false;  ///< a gate gives it: lambda is its constant
};

struct WithOptions {
  std::vector<std::string> models;  ///< FOLDER, FOLDER:auto, FOLDER:gate or FOLDER:0.3
  void fields(core::FieldList& f);

  bool any() const { return !models.empty(); }
  /// No share is given, and no gate.
  bool open() const;
  /// Those of auto, which is meant where nothing is said, those of a gate and the model itself
  /// share what the others leave alike. Throws Error{usage} for a share that is not at least 0, for
  /// shares that are not below 1 together, and for two gates.
  std::vector<WithShare> shares() const;
};

/// As WithOptions takes them, of folders and shares that are settled.
std::vector<std::string> with_texts(const std::vector<WithShare>& shares);

}  // namespace infer
