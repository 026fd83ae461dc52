// The text models of Qwen 3.5: layers of the gated delta rule and of gated attention, in a list;
// norms times 1 + weight; rotary positions of a part of each head.

#include "model/families/family.h"

namespace model {
namespace {

constexpr const char* kMixers = "layer_types";
struct LayerType {
  std::string_view theirs, ours;
};
constexpr LayerType kTypes[] = {{"linear_attention", "delta"}, {kFullLayer, "gated-attention"}};

std::string list_of(const ConfigKeys& keys, std::int64_t layers) {
  auto theirs = keys.texts(kMixers);
  const auto period = theirs.empty() ? keys.size("full_attention_interval", 4) : 1;
  for (std::int64_t i = 1; !keys.has(kMixers) && i <= layers; ++i)
    theirs.emplace_back(kTypes[i % period == 0 ? 1 : 0].theirs);
  if (std::ssize(theirs) != layers) keys.unsupported(kMixers, "a different number of layers");
  if (!core::contains(theirs, kFullLayer)) keys.unsupported(kMixers, "no full attention");
  for (auto& name : theirs) {
    const auto* const known = core::find_by(kTypes, name, &LayerType::theirs);
    if (known == nullptr) keys.unsupported(kMixers, core::dump(core::Json(name)));
    name = known->ours;
  }
  return fmt::format("{}", fmt::join(theirs, ","));
}

}  // namespace

void qwen3_5_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& gla = options.gla;
  gated_keys(pairs, options, row);
  if (pairs.from != nullptr) options.mixers.list = list_of(*pairs.from, options.shape.layers);
  pairs.size("linear_conv_kernel_dim", gla.convolution, 4);
  pairs.size("linear_key_head_dim", gla.d_key, 128);
  pairs.size("linear_value_head_dim", gla.d_value, 128);
  pairs.size("linear_num_key_heads", gla.key_heads, 16);
  pairs.size("linear_num_value_heads", gla.value_heads, 32);
  if (pairs.to != nullptr) {
    auto& list = (*pairs.to)[kMixers] = core::OrderedJson::array();
    for (const auto& name : options.layer_mixers()) {
      const auto* const known = core::find_by(kTypes, name, &LayerType::ours);
      list.push_back(known == nullptr ? name : std::string(known->theirs));
    }
    return;
  }
  const ConfigKeys& keys = *pairs.from;
  if (gla.convolution < 2) keys.unsupported("linear_conv_kernel_dim", "a number below 2");
  keys.expect("attn_output_gate", true);
  keys.expect("attention_bias", false);
  if (keys.activation("hidden_act", row.activation) != "silu")  // the convolution's, too
    keys.unsupported("hidden_act", "a function other than silu");
  if (options.transformer.rope.scaling != "none")
    keys.unsupported("rope_parameters", "a scaling of the angles");
  options.transformer.norm_kind = "rms-one";
  options.transformer.positions = nn::TransformerOptions().positions;  // an option of transformers
}

}  // namespace model
