#pragma once
// Options of memories at test time.
// Container of values by type, for data of source kinds among options and in a plan.

#include <any>
#include <typeindex>

#include "infer/sources/memory_weight.h"

namespace infer {

/// Holds one value of each type and creates it on first access. A copy copies all values.
/// References remain valid as long as the Slots.
class Slots {
 public:
  template <class T> T& of() {
    std::any& held = held_[typeid(T)];
    if (!held.has_value()) held = T{};
    return *std::any_cast<T>(&held);
  }
  /// Returns the value, or T{} if absent.
  template <class T> const T& of() const {
    static const T none{};
    const auto held = held_.find(typeid(T));
    return held == held_.end() ? none : *std::any_cast<T>(&held->second);
  }

 private:
  std::map<std::type_index, std::any> held_;
};

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
  MemoryWeight lambda;
  double temperature = 0;  ///< 0: sqrt(d_key)
  JointOptions joint;      ///< settings in the joint softmax
  /// Minimum number of pointers that replace a search; 0: always search.
  std::int64_t follow = 0;
  double threshold = 0;  ///< gate weight below which the search is skipped

  bool any() const { return !folders.empty(); }
};

/// Upper bounds of the suffix-length buckets. The weight of n-grams depends on the length of the
/// matching suffix and on whether only one token has followed it.
inline constexpr std::int64_t kNgramLengths[] = {0, 1, 2, 3, 4, 6, 9, 15, 31};
inline constexpr std::int64_t kNgramLengthBuckets = std::size(kNgramLengths) + 1;
/// Number of buckets: the lengths with several next tokens, then the lengths with one.
inline constexpr std::int64_t kNgramBuckets = 2 * kNgramLengthBuckets;
std::int64_t ngram_bucket(std::uint64_t length, bool one);

struct NgramOptions {
  std::vector<std::string> folders;
  MemoryWeights lambda;  ///< one weight for all, one for each bucket, or gate

  bool any() const { return !folders.empty(); }
};
/// Returns one weight for each bucket; zeros for a gate, `otherwise` if unset. Throws Error{usage}
/// with the flag's name for any other number of weights.
std::vector<double> ngram_weights(
    const MemoryWeights& lambda, const char* flag, double otherwise = 0.1);
/// Formats the weights of the buckets for a signature: one if all are equal.
std::string signed_shares(const std::vector<double>& shares);

/// A model of the mixture: its folder and weight.
struct EnsembleWeight {
  std::string folder;
  double lambda = 0;
  bool gated = false;      ///< a gate gives the weight; lambda is its constant
  double temperature = 1;  ///< of its softmax
};

struct EnsembleOptions {
  std::vector<std::string> models;   ///< FOLDER, FOLDER:auto, FOLDER:gate or FOLDER:0.3
  std::vector<double> temperatures;  ///< one for all, or one for each; empty: 1

  bool any() const { return !models.empty(); }
  /// Returns whether neither a weight nor a gate is given.
  bool open() const;
  /// Returns the weights and temperatures. The main model, models with `auto` (the default) and
  /// models with a gate divide the remaining weight equally. Throws Error{usage} for a negative
  /// weight, for weights that sum to 1 or more, for two gates, and for another number of
  /// temperatures.
  std::vector<EnsembleWeight> shares() const;
};

/// Formats resolved folders and weights as EnsembleOptions takes them.
std::vector<std::string> ensemble_texts(const std::vector<EnsembleWeight>& shares);

/// Selects the memories at test time and their interpolation with the head. A MemoryPlan is the
/// resolved form for a model.
///   p = (1 - l_o) p_rest + l_o p_online, where
///   p_rest = (1 - l_n) ((1 - l_m - l_c - l_u - l_s - l_e) p_joint + l_m p_memory + l_c p_cache
///       + l_u p_unigram + l_s p_stores + l_e p_ensemble) + l_n p_ngrams
/// p_joint: one softmax over the head and, with combine = joint or both, local memory, long memory
/// and datastores (TRIME, eq. 2), each with its own temperature and log-weight (JointPart).
/// p_memory: with combine = interpolate, local and long memory alone (l_m = memory_lambda, else 0).
/// p_cache: softmax of theta f.f over the `cache` previous positions (Grave et al. 2017).
/// p_unigram: how often the text so far has each token (see UnigramOptions). p_stores: the
/// neighbours from datastores alone (kNN-LM; see StoreOptions). p_ngrams: counts of the tokens that
/// followed the longest matching suffix of the context in other texts; l_n depends on that
/// suffix (see NgramOptions). p_online: the same of the text so far, interpolated down to the whole
/// vocabulary. p_ensemble: the softmax of each further model, each with its own
/// weight and temperature (see EnsembleOptions).
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
  MemoryWeight memory_lambda;
  std::int64_t cache = 0;  ///< positions; 0: no cache
  double cache_theta = 0;  ///< 0: 1 / sqrt(d_model)
  MemoryWeight cache_lambda;
  StoreOptions stores;
  NgramOptions ngrams;
  EnsembleOptions with;
  Slots more;  ///< options of kinds without members here
  /// "online", "constant" or "auto" (online if no weight is given or tuned).
  std::string weights = "auto";
  bool in_parts = false;          ///< a text is scored in parts: "auto" is constant
  bool answers = false;           ///< generates texts: n-grams have weights of their own
  bool weights_follow = false;    ///< online weights also learn from tokens that the model samples
  std::vector<std::string> gate;  ///< fitted gates as texts: see Gate
  std::string tuned_on;  ///< fingerprint of the data on which the parameters were tuned, for the
                         ///< signature
  /// Names of the options that the user gave for this run, not in a config file: plan_memory()
  /// refuses those of sources that do not take part.
  std::set<std::string> flags;
  /// Returns the folders of the datastores to search; see MemoryPlan::lookup().
  const std::vector<std::string>& lookup() const { return stores.folders; }
  /// Lists the options of each of source_kinds(), then the common ones.
  void fields(core::FieldList& f);
};

}  // namespace infer
