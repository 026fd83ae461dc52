#pragma once
// Options of datastores at test time.

#include <cstdint>
#include <string>
#include <vector>

#include "infer/sources/joint_part.h"
#include "infer/sources/share.h"

namespace infer {

/// Options of all datastores together, which are one memory: the k nearest entries of all.
/// `combine`:
///   joint        entries join the head's softmax beside local and long memory, with scores q.k
///                (ip) or -|q - k|^2 (l2) over sqrt(d_key) times the joint temperature (TRIME,
///                eq. 2); see JointPart
///   interpolate  entries form a separate distribution p_stores with the weight `lambda` and scores
///                over `temperature` alone (Khandelwal et al. 2020)
///   both         one search serves joint and interpolate
///   released     as the code released for TRIME's translations: the sum of joint's share 1 - m of
///                the head and the datastores' part divided by its own mass m instead of the whole.
///                These scores for a search sum to 2 - m and are not a distribution
struct StoreOptions {
  std::vector<std::string> folders;
  std::string combine = "auto";  ///< auto: as local and long memory
  std::int64_t k = 1024, nprobe = 32;
  bool rescore = false;  ///< recomputes exact scores of FAISS's results from the keys
  Share lambda;
  double temperature = 0;  ///< 0: sqrt(d_key)
  JointOptions joint;      ///< settings in the joint softmax
  /// Minimum number of pointers that replace a search; 0: always search.
  std::int64_t follow = 0;
  double threshold = 0;  ///< gate weight below which the search is skipped

  bool any() const { return !folders.empty(); }
};

}  // namespace infer
