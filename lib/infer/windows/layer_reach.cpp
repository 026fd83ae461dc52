#include "infer/windows/layer_reach.h"

namespace infer {
namespace {

using core::Code;
using core::Error;

// Sets it where a model has such a memory. If none has, reports the first model's reason.
void set_where_it_is(const std::vector<nn::Model*>& models, const auto& set) {
  std::string refused;
  bool taken = false;
  for (nn::Model* const model : models) {
    try {
      set(*model->architecture);
      taken = true;
    } catch (const Error& error) {
      if (error.code() != Code::usage) core::bad_usage("{}", error.what());
      if (refused.empty()) refused = error.what();
    }
  }
  if (!taken) core::bad_usage("{}", refused);
}

}  // namespace

void LayerReachOptions::fields(core::FieldList& f) {
  const auto in_memory_of_layers = f.group("Memory of layers");
  f("layer-memory", layer_memory,
      "memory length of each layer in tokens, in the form that train takes [as trained]");
  f("clamp-length", clamp_length,
      "clamp relative distances at N (clamp_len); none: no clamp; auto: as trained")
      .between(1, 16e6)
      .or_none()
      .or_auto(-1);
  f("same-length", same_length,
      "limit the attention of every token to the memory length (same_length); auto: as trained",
      {"auto", "on", "off"});
  f("context-slots", context_slots,
      "mosaic: key-value pairs in each head of a contextual memory; none: unbounded")
      .between(1, 16e6)
      .or_none();
  f("evict", evict, "pair evicted from a full memory: the oldest, or the least recently used (lru)",
      {"oldest", "lru"});
}

void LayerReachOptions::apply(const std::vector<nn::Model*>& models) const {
  if (context_slots == 0 && evict != "oldest")
    core::bad_usage("--evict {}: requires --context-slots", evict);
  if (context_slots > 0)
    set_where_it_is(models, [&](auto& of) { of.bound_slots({context_slots, evict == "lru"}); });
  const nn::LayerReach memory{layer_memory, -1, ""}, clamp{"", clamp_length, ""},
      same{"", -1, same_length == "auto" ? "" : same_length};
  for (const auto& one : {memory, clamp, same})
    if (!one.open()) set_where_it_is(models, [&](auto& of) { of.set_reach(one); });
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
