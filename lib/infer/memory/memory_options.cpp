#include "infer/memory/memory_options.h"

namespace infer {

void MemoryOptions::fields(core::FieldList& f) {
  const auto in_memories = f.group("Memories");
  f("memory", memory,
    "none, or a sum of local and long [local and long as the model was trained with]");
  f("long", long_reach, "how far long reaches back: 12288 (tokens) or 4seg (segments) [4seg]");
  f("combine", combine,
    "memories in the head's softmax, as distributions of their own, or (stores) as both",
    {"joint", "interpolate", "both"});
  f("joint-temperature", joint_temperature,
    "divides the scores of local, long and joined stores; 0: as the model was calibrated")
      .between(0, 1e6);
  f("memory-lambda", memory_lambda, "share of local and long with --combine interpolate")
      .at_least(0)
      .below(1);
  f("cache", cache, "positions of the continuous cache; 0: none").between(0, 1e9);
  f("cache-theta", cache_theta, "its scores are theta f.f; 0: 1/sqrt(width of f)").between(0, 1e6);
  f("cache-lambda", *cache_lambda.target(), "its share (0 to below 1), or gate");
  stores.fields(f);
  ngrams.fields(f);
  with.fields(f);
  f("gate", gate, "gates as --tune fitted them, for the shares that are gate; a text each");
  f("tuned-on", tuned_on, "fingerprint of the data these were tuned on, for the signature");
}

}  // namespace infer
