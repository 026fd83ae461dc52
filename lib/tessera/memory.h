#pragma once
// Memories at test time.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/options.h"

namespace tessera {

/// A Memory says what a model reads beside its context when it is evaluated or generates. Its
/// probabilities are mixed with the model's:
///
///   p = (1 - l_o) p_rest + l_o p_online, where
///   p_rest = (1 - l_n) ((1 - l_m - l_c - l_u - l_s - l_e) p_model + l_m p_memory + l_c p_cache
///       + l_u p_unigram + l_s p_datastores + l_e p_ensemble) + l_n p_ngrams
///
/// Unset weights l are learned from the tokens read so far (eval-ppl(1), --memory-weights).
struct Memory {
  std::vector<std::string> datastores = {};  ///< folders of build_store(), searched as one
  std::vector<std::string> ngrams = {};      ///< folders of build_ngrams(), counted as one
  std::vector<std::string> ensemble = {};    ///< further models: FOLDER or FOLDER:WEIGHT
  std::int64_t cache = 0;                    ///< positions of a continuous cache; 0: none
  /// All other options of eval-ppl's memories: {"cache-lambda", "0.25"}, {"unigram", "true"}, ...
  Options options = {};
};

}  // namespace tessera
