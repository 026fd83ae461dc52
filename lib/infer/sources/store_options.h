#pragma once
// Which datastores take part at test time, and how.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/sources/joint_part.h"
#include "infer/sources/share.h"

namespace infer {

/// All stores together are one memory: the k nearest entries of all of them. `combine`:
///   joint        they stand in the head's softmax beside local and long, q.k (ip) or -|q - k|^2
///                (l2) over sqrt(d_key) times the joint temperature (TRIME, eq. 2); see JointPart
///   interpolate  they are a distribution p_stores of their own with the share `lambda`, the same
///                scores over `temperature` alone (Khandelwal et al. 2020)
///   both         one search serves both
///   released     what the code released for TRIME's translations adds up: joint's share 1 - m of
///                the head, and all of the stores' part, divided by its own mass m and not by the
///                whole. Scores for a search, not a distribution: they sum up to 2 - m
struct StoreOptions {
  std::vector<std::string> folders;
  std::string combine = "auto";  ///< as local and long are
  std::int64_t k = 1024, nprobe = 32;
  bool rescore = false;  ///< exact scores of what FAISS found, from the keys
  Share lambda;
  double temperature = 0;  ///< 0: sqrt(d_key)
  JointOptions joint;      ///< joined
  /// So many pointers at least are followed instead of a search; 0: never.
  std::int64_t follow = 0;
  double threshold = 0;  ///< a share by the gate, below which there is no search
  void fields(core::FieldList& f);

  bool any() const { return !folders.empty(); }
};

}  // namespace infer
