#include "infer/windows/layer_reach.h"

#include <algorithm>

#include "core/error.h"

namespace infer {

void LayerReachOptions::fields(core::FieldList& f) {
  f("layer-memory", layer_memory,
    "past tokens each layer keeps, as train takes it [as the model was trained]");
  f("clamp-length", clamp_length,
    "farther tokens count as so far away; 0: no bound; -1: as the model was trained")
      .between(-1, 16e6);
  f("same-length", same_length,
    "a token sees no more before it than its layer keeps; auto: as the model was trained",
    {"auto", "on", "off"});
  f("context-slots", context_slots,
    "mosaic: pairs that each head of a contextual memory holds; 0: all")
      .between(0, 16e6);
  f("evict", evict, "which pair goes when they are full: the oldest, or the least recently used",
    {"oldest", "lru"});
}

void LayerReachOptions::apply(nn::Model& model) const {
  if (context_slots == 0 && evict != "oldest")
    core::fail(core::Code::usage, "--evict {}: it goes with --context-slots", evict);
  try {
    if (context_slots > 0) model.architecture->bound_slots({context_slots, evict == "lru"});
    const nn::LayerReach reach{layer_memory, clamp_length,
                               same_length == "auto" ? "" : same_length};
    if (!reach.open()) model.architecture->set_reach(reach);
  } catch (const core::Error& error) {
    core::fail(core::Code::usage, "{}", error.what());
  }
}

std::string LayerReachOptions::signature() const {
  std::string text;
  std::string lengths = layer_memory;
  std::replace(lengths.begin(), lengths.end(), ' ', '+');
  if (!lengths.empty()) text += "|layer-memory:" + lengths;
  if (clamp_length >= 0) text += fmt::format("|clamp-length:{}", clamp_length);
  if (same_length != "auto") text += "|same-length:" + same_length;
  if (context_slots > 0) text += fmt::format("|context-slots:{}|evict:{}", context_slots, evict);
  return text;
}

}  // namespace infer
