#pragma once
// Options of memories at test time.

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

/// Selects the memories at test time and their interpolation with the head. A MemoryPlan is the
/// resolved form for a model.
///   p = (1 - l_n) ((1 - l_m - l_c - l_s - l_e) p_joint + l_m p_memory + l_c p_cache + l_s p_stores
///       + l_e p_ensemble) + l_n p_ngrams
/// p_joint: one softmax over the head and, with combine = joint or both, local memory, long memory
/// and datastores (TRIME, eq. 2), each with its own temperature and log-weight (JointPart).
/// p_memory: with combine = interpolate, local and long memory alone (l_m = memory_lambda, else 0).
/// p_cache: softmax of theta f.f over the `cache` previous positions (Grave et al. 2017). p_stores:
/// the neighbours from datastores alone (kNN-LM; see StoreOptions). p_ngrams: counts of the tokens
/// that followed the longest matching suffix of the context in other texts; l_n depends on that
/// suffix (see NgramOptions). p_ensemble: the softmax of each further model, each with its own
/// weight (see WithOptions).
///
/// If a source has no entries yet, its weight is added to p_joint. A weight `gate` depends on the
/// token: see Gate. Unset weights are learned online from the tokens seen so far (weights = online;
/// see OnlineWeights); otherwise l_m and l_s are 0.25, l_c and l_n 0.1.
struct MemoryOptions {
  std::string memory;      ///< none, or a sum of local and long; empty: as in training
  std::string long_reach;  ///< --long: "12288" tokens or "4seg" segments; empty: 4seg
  std::string combine = "joint";
  /// Temperature that divides the scores of local and long memory, and of joined datastores. 0: the
  /// calibrated or training temperature of the model (model::test_temperature).
  double joint_temperature = 0;
  JointOptions local, far;  ///< settings in the joint softmax
  Share memory_lambda;
  std::int64_t cache = 0;  ///< positions; 0: no cache
  double cache_theta = 0;  ///< 0: 1 / sqrt(d_model)
  Share cache_lambda;
  StoreOptions stores;
  NgramOptions ngrams;
  WithOptions with;
  Slots more;  ///< options of kinds without members here
  /// "online", "constant" or "auto" (online if no weight is given or tuned).
  std::string weights = "auto";
  bool weights_follow = false;    ///< online weights also learn from tokens that the model samples
  std::vector<std::string> gate;  ///< fitted gates as texts: see Gate
  std::string tuned_on;  ///< fingerprint of the data on which the parameters were tuned, for the
                         ///< signature
  /// Lists the options of each of source_kinds(), then the common ones.
  void fields(core::FieldList& f);
};

}  // namespace infer
