#pragma once
// Datastores. Their nearest entries join the head's softmax (TRIME), form a distribution of their
// own (kNN-LM), or both, with one search.

#include "infer/sources/memory_plan.h"

namespace infer {

/// Options of all datastores together, which are one memory: the k nearest entries of all.
/// `combine`:
///   joint        entries join the head's softmax beside local and long memory, with scores q.k
///                (ip) or -|q - k|^2 (l2) over sqrt(d_key) times the joint temperature (TRIME,
///                eq. 2); see JointPart
///   interpolate  entries form a separate distribution with the weight `lambda` and scores
///                over `temperature` alone (Khandelwal et al. 2020)
///   both         one search serves joint and interpolate
///   released     as the code released for TRIME's translations: the sum of joint's share 1 - m of
///                the head and the datastores' part divided by its own mass m instead of the whole.
///                These scores for a search sum to 2 - m and are not a distribution
struct StoreOptions {
  std::vector<std::string> folders;
  std::string combine = "auto";  ///< auto: as local and long memory (ContextOptions::combine)
  std::int64_t k = 1024, nprobe = 32;
  bool rescore = false;    ///< recomputes exact scores of FAISS's results from the keys
  MemoryWeight lambda;     ///< unset: 0.25
  double temperature = 0;  ///< 0: sqrt(d_key)
  JointOptions joint;      ///< settings in the joint softmax
  /// Minimum number of pointers that replace a search; 0: always search.
  std::int64_t follow = 0;
  double threshold = 0;  ///< gate weight below which the search is skipped

  bool any() const { return !folders.empty(); }
};

/// Resolved StoreOptions.
struct StorePlan {
  std::shared_ptr<const Stores> opened;  ///< null: no datastores
  std::string combine = "joint";         ///< joint, interpolate, both or released
  std::int64_t k = 1024, nprobe = 32;
  std::int64_t follow = 0;
  bool rescore = false;
  double lambda = 0.25, temperature = 1;
  JointPart joint{"datastore"};

  bool any() const { return opened != nullptr; }
  bool joined() const { return any() && combine != "interpolate"; }
  bool interpolated() const { return any() && (combine == "interpolate" || combine == "both"); }
};

/// The datastores that are open.
struct OpenStores {
  std::shared_ptr<const Stores> opened;  ///< null: none
  bool shared = false;  ///< among ranks: all take part, also if their options name no folder
};

}  // namespace infer
