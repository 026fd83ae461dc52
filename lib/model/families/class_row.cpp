#include "model/families/class_row.h"

namespace model {

// The members of a row by their names. The macros define what nlohmann::json calls.
NLOHMANN_JSON_SERIALIZE_ENUM(
    Angles, {{Angles::none, "none"}, {Angles::whole, "whole"}, {Angles::partial, "partial"},
                {Angles::by_kind, "by_kind"}})
NLOHMANN_JSON_SERIALIZE_ENUM(
    Windows, {{Windows::none, "none"}, {Windows::every, "every"}, {Windows::switched, "switched"},
                 {Windows::unturned, "unturned"}, {Windows::periodic, "periodic"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Layout,
    {{Layout::as_is, "as_is"}, {Layout::transposed, "transposed"}, {Layout::by_head, "by_head"},
        {Layout::after_two, "after_two"}, {Layout::taps, "taps"}, {Layout::by_part, "by_part"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ClassRow, architecture, arch, context, kv_heads,
    d_head, fixed_head, divided, epsilon, tied, width_key, activation_key, activation, angles,
    theta, local_theta, share, theta_key, local_key, share_key, trained, only_longrope, windows,
    window, period, aliases, computes, base, modules, layouts, stacked, buffers)

namespace {

core::Json described(const core::Json& all, const std::string& type) {
  const auto& own = all.at(type);
  auto whole = own.contains("like") ? described(all, own["like"]) : core::Json::object();
  whole.merge_patch(own);
  whole.erase("like");
  return whole;
}

const std::map<std::string, ClassRow, std::less<>>& rows() {
  static const auto rows = [] {
    std::map<std::string, ClassRow, std::less<>> made;
    const auto all = core::Json::parse(kFamilies);
    const core::Json members = ClassRow();
    for (const auto& [type, own] : all.items()) {
      const auto row = described(all, type);
      for (const auto& [key, value] : row.items())
        if (!members.contains(key)) core::bug("a ClassRow has no {}", key);
      made[type] = row.get<ClassRow>();
      made[type].type = type;
    }
    return made;
  }();
  return rows;
}

// A key that changes the function of some class, and the value at which it has no effect.
struct Switch {
  const char* key;
  core::Json off;
};

const std::vector<Switch>& switches() {
  static const std::vector<Switch> all = {{"attention_bias", false}, {"mlp_bias", false},
      {"partial_rotary_factor", 1}, {"rotary_pct", 1}, {"rotary_emb_base", nullptr},
      {"rope_local_base_freq", nullptr}, {"llama_4_scaling_beta", 0}, {"no_rope_layers", nullptr},
      {"sliding_window", nullptr}, {"layer_types", nullptr}, {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr}, {"query_pre_attn_scalar", nullptr},
      {"attention_multiplier", nullptr}, {"embedding_multiplier", 1}, {"residual_multiplier", 1},
      {"logits_scaling", 1}, {"qk_layernorm", false}, {"clip_qkv", nullptr},
      {"norm_topk_prob", true}};
  return all;
}

// Adds those of one object; rotary keys may be in objects of the config.json, or in theirs.
void add_ignored(
    const ClassRow& row, const core::Json& object, int deeper, std::vector<std::string>& found) {
  for (const auto& [key, off] : switches()) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null() || *at == off || row.has(key)) continue;
    auto text = fmt::format("\"{}\"", key);
    if (at->is_number() || at->is_boolean()) text += ": " + core::dump(*at);
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  }
  for (const char* inner : {"rope_scaling", "rope_parameters", "full_attention"})
    if (const auto at = object.find(inner); deeper > 0 && at != object.end() && at->is_object())
      add_ignored(row, *at, deeper - 1, found);
}

}  // namespace

bool ClassRow::has(std::string_view key) const {
  return std::find(computes.begin(), computes.end(), key) != computes.end();
}

const ClassRow& class_row(std::string_view type) {
  if (const auto found = rows().find(type); found != rows().end()) return found->second;
  core::bug("no class of transformers is described for {}", type);
}

std::vector<std::string> ignored_keys(const ClassRow& row, const core::Json& config) {
  std::vector<std::string> found;
  add_ignored(row, config, 2, found);
  return found;
}

}  // namespace model
