#pragma once
// What is to be remembered at test time, as it was asked for.

#include <cstdint>
#include <string>

#include "core/options.h"
#include "infer/sources/joint_part.h"
#include "infer/sources/ngram_options.h"
#include "infer/sources/share.h"
#include "infer/sources/slots.h"
#include "infer/sources/store_options.h"
#include "infer/sources/with_options.h"

namespace infer {

/// What is remembered at test time, and how it joins the head. What it comes to for a model is a
/// MemoryPlan.
///   p = (1 - l_n) ((1 - l_m - l_c - l_s - l_w) p_joint + l_m p_memory + l_c p_cache + l_s p_stores
///       + l_w p_with) + l_n p_ngrams
/// p_joint: the head and, with combine = joint or both, local, long and stores in one softmax
/// (TRIME, eq. 2), each with its own temperature and log-weight (JointPart); p_memory: with combine = interpolate, local and long alone (l_m = memory_lambda,
/// else 0); p_cache: softmax of theta f.f over the `cache` previous positions (Grave et al. 2017);
/// p_stores: what the datastores gave, alone (kNN-LM; see StoreOptions).
/// p_ngrams: counts of what followed the longest suffix of the text so far that other texts have;
/// l_n depends on that suffix (see NgramOptions).
/// p_with: the softmax of a further model (see WithOptions), each with a share of its own.
/// A source that sees nothing yet gives its share to p_joint.
/// A share that is `gate` depends on the token: see Gate. Shares that are left open are learned
/// from the tokens that came (weights = online; see OnlineWeights), or, where that is not so, are
/// l_m and l_s 0.25, l_c and l_n 0.1.
struct MemoryOptions {
  std::string memory;  ///< none, or a sum of local, long; empty: what the model was trained with
  std::string long_reach;  ///< --long: "12288" tokens or "4seg" segments; empty: 4seg
  std::string combine = "joint";
  /// Divides the scores of local and long, however combined, and of stores that are joined; 0: what
  /// the model was calibrated to or trained with (model::test_temperature).
  double joint_temperature = 0;
  JointOptions local, far;  ///< in the joint softmax
  Share memory_lambda;
  std::int64_t cache = 0;  ///< positions; 0: no cache
  double cache_theta = 0;  ///< 0: 1 / sqrt(d_model)
  Share cache_lambda;
  StoreOptions stores;
  NgramOptions ngrams;
  WithOptions with;
  Slots more;  ///< of kinds that have no members here
  /// online, constant, or auto: online where no share is given or tuned.
  std::string weights = "auto";
  bool weights_follow = false;    ///< words that a model draws are learned from too
  std::vector<std::string> gate;  ///< gates that were fitted, as texts: see Gate
  std::string tuned_on;  ///< fingerprint of the data these figures were tuned on, for the signature
  /// Those of each of source_kinds(), and the last ones.
  void fields(core::FieldList& f);
};

}  // namespace infer
