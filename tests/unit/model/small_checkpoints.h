#pragma once
// Tiny checkpoints of other programs' trainers as torch.save's stream, and their parts, from which
// tests build files that no trainer writes.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "unit/model/torch_bytes.h"

namespace small_checkpoints {

using namespace torch_bytes;
using Shape = std::vector<std::int64_t>;

/// The only storage of a file, from which tensors are taken in sequence.
class Floats {
 public:
  std::string operator()(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    std::int64_t n = 1;
    for (const auto size : shape) n *= size;
    used_ += n;
    return tensor("FloatStorage", "0", 0, used_ - n, shape, strides);
  }
  /// Returns torch.save of `value`, which was made with these tensors.
  std::string save(const std::string& value) const {
    if (used_ == 0) return stream(value, {});
    return stream(value, {{"0", static_cast<std::uint64_t>(used_),
                             bytes_of(std::vector<float>(static_cast<std::size_t>(used_), .5F))}});
  }

 private:
  std::int64_t used_ = 0;
};

/// Returns each name with its own tensor.
inline Pairs tensors(Floats& floats, const std::vector<std::pair<std::string, Shape>>& shapes) {
  Pairs pairs;
  for (const auto& [name, shape] : shapes) pairs.emplace_back(unicode(name), floats(shape));
  return pairs;
}

inline Pairs wholes(const std::vector<std::pair<std::string, std::int32_t>>& settings) {
  Pairs pairs;
  for (const auto& [name, value] : settings) pairs.emplace_back(unicode(name), whole(value));
  return pairs;
}

inline Pairs joined(Pairs a, const Pairs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Returns an object with these attributes.
inline std::string object(const std::string& module, const std::string& name, const Pairs& own) {
  return global(module, name) + ")\x81" + dict(own) + "b";
}

// nanoGPT
// ------------------------------------------------------------------------------------------

inline std::string nanogpt() {
  Floats floats;
  const auto weights = tensors(floats,
      {{"transformer.wte.weight", {3, 2}}, {"transformer.wpe.weight", {4, 2}},
          {"transformer.h.0.ln_1.weight", {2}}, {"transformer.h.0.attn.c_attn.weight", {6, 2}},
          {"transformer.h.0.attn.c_proj.weight", {2, 2}}, {"transformer.h.0.ln_2.weight", {2}},
          {"transformer.h.0.mlp.c_fc.weight", {8, 2}},
          {"transformer.h.0.mlp.c_proj.weight", {2, 8}}, {"transformer.ln_f.weight", {2}}});
  const auto settings =
      joined(wholes({{"n_layer", 1}, {"n_head", 1}, {"n_embd", 2}, {"block_size", 4}}),
          {{unicode("vocab_size"), whole(3)}, {unicode("bias"), "\x89"}});
  return floats.save(dict({{unicode("model"), ordered_dict(weights)},
      {unicode("model_args"), dict(settings)}, {unicode("iter_num"), whole(7)}}));
}

inline std::string nanomosaics() {
  Floats floats;
  const Shape number = {1, 1, 1, 1}, memory = {1, 1, 1, 2, 2}, square = {2, 2};
  std::vector<std::pair<std::string, Shape>> shapes = {
      {"mosaic.wte.weight", {3, 2}}, {"mosaic.ln_f.weight", {2}}};
  for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{{"ln_1.weight", {2}},
           {"ln_2.weight", {2}}, {"attn.k_featurizer.W_k.weight", square},
           {"attn.k_featurizer.leaky_avg.leaky_key_beta", number},
           {"attn.k_featurizer.key_scale", number}, {"attn.v_featurizer.W_v.weight", square},
           {"attn.v_featurizer.coef", number}, {"attn.v_featurizer.val_scale", number},
           {"attn.c_proj.weight", square}, {"mlp.k_featurizer.W_k.weight", square},
           {"mlp.k_featurizer.leaky_avg.leaky_key_beta", number},
           {"mlp.k_featurizer.key_scale", number}, {"mlp.P_k", memory}, {"mlp.P_v", memory},
           {"mlp.out_scale", number}, {"mlp.c_proj.weight", square}})
    shapes.emplace_back("mosaic.h.0." + name, shape);
  const auto weights = tensors(floats, shapes);
  const auto settings = joined(wholes({{"n_layer", 1}, {"n_head", 1}, {"n_embd", 2},
                                   {"block_size", 4}, {"vocab_size", 3}, {"pmem_size", 2}}),
      {{unicode("bias"), "\x89"}});
  return floats.save(
      dict({{unicode("model"), ordered_dict(weights)}, {unicode("model_args"), dict(settings)}}));
}

// fairseq
// ------------------------------------------------------------------------------------------

/// `more` settings replace the usual ones.
inline std::string fairseq_of(const Floats& floats, const Pairs& weights, const Pairs& more = {}) {
  const auto settings = joined(
      wholes({{"decoder_embed_dim", 2}, {"decoder_layers", 1}, {"decoder_attention_heads", 1},
          {"decoder_ffn_embed_dim", 3}, {"max_target_positions", 4}, {"adaptive_input_factor", 2},
          {"tokens_per_sample", 4}}),
      more);
  return floats.save(dict({{unicode("args"), object("argparse", "Namespace", settings)},
      {unicode("model"), ordered_dict(weights)}}));
}

inline Pairs fairseq_layer(Floats& floats) {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{
           {"self_attn_layer_norm", {2}}, {"final_layer_norm", {2}}, {"self_attn.q_proj", {2, 2}},
           {"self_attn.k_proj", {2, 2}}, {"self_attn.v_proj", {2, 2}},
           {"self_attn.out_proj", {2, 2}}, {"fc1", {3, 2}}, {"fc2", {2, 3}}}) {
    shapes.emplace_back("decoder.layers.0." + name + ".weight", shape);
    shapes.emplace_back("decoder.layers.0." + name + ".bias", Shape{shape[0]});
  }
  return tensors(floats, shapes);
}

inline std::string fairseq_plain() {
  Floats floats;
  const auto words = tensors(floats,
      {{"decoder.embed_tokens.weight", {5, 2}}, {"decoder.embed_positions.weight", {6, 2}}});
  return fairseq_of(floats, joined(words, fairseq_layer(floats)));
}

inline std::string fairseq_adaptive() {
  Floats floats;
  const auto words = tensors(floats, {{"decoder.embed_tokens.embeddings.0.0.weight", {2, 2}},
                                         {"decoder.embed_tokens.embeddings.0.1.weight", {2, 2}},
                                         {"decoder.embed_tokens.embeddings.1.0.weight", {3, 1}},
                                         {"decoder.embed_tokens.embeddings.1.1.weight", {2, 1}},
                                         {"decoder.adaptive_softmax.head.weight", {3, 2}},
                                         {"decoder.adaptive_softmax.tail.0.0.weight", {1, 2}},
                                         {"decoder.adaptive_softmax.tail.0.2.weight", {3, 1}}});
  return fairseq_of(floats, joined(words, fairseq_layer(floats)));
}

// Transformer-XL
// -----------------------------------------------------------------------------------

/// Returns a module from its attributes, parameters and modules.
inline std::string module(
    const std::string& name, const Pairs& own, const Pairs& parameters, const Pairs& modules) {
  auto all = own;
  all.emplace_back(unicode("_parameters"), ordered_dict(parameters));
  all.emplace_back(unicode("_buffers"), ordered_dict({}));
  all.emplace_back(unicode("_modules"), ordered_dict(modules));
  return object("mem_transformer", name, all);
}

struct TransformerXl {
  std::int32_t words = 5, d_model = 2;
  std::vector<std::int32_t> cutoffs = {2};
  std::int32_t div_val = 2;
  std::int64_t d_embed = 2;  ///< of band 0
  bool projections = true;
};

inline std::string transformer_xl(const TransformerXl& of = {}) {
  Floats floats;
  const std::int64_t d = of.d_model;
  const auto one = [&](const std::string& name, const Shape& shape) {
    return tensors(floats, {{name, shape}});
  };
  const auto layer = [&](const Shape& shape, bool bias) {
    auto own = one("weight", shape);
    return module("Linear", {}, bias ? joined(own, one("bias", {shape[0]})) : own, {});
  };
  std::vector<std::string> edges;
  for (const auto cutoff : of.cutoffs) edges.push_back(whole(cutoff));
  edges.push_back(whole(of.words));
  Pairs tables, input, output, rows, narrower;
  const std::size_t bands = of.div_val == 1 ? 1 : of.cutoffs.size() + 1;
  std::int64_t width = of.d_embed;
  for (std::size_t i = 0; i < bands; ++i) {
    const std::int64_t begin = i == 0 ? 0 : of.cutoffs[i - 1],
                       end = i + 1 == bands ? of.words : of.cutoffs[i];
    const auto number = std::to_string(i);
    tables.emplace_back(unicode(number), layer({end - begin, width}, false));
    rows.emplace_back(unicode(number), layer({end - begin, width}, true));
    if (of.projections) {
      input = joined(input, one(number, {d, width}));
      narrower = joined(narrower, one(number, {d, width}));
    }
    width /= of.div_val;
  }
  const auto words = module("AdaptiveEmbedding",
      joined(wholes({{"n_token", of.words}, {"d_embed", static_cast<std::int32_t>(of.d_embed)},
                 {"div_val", of.div_val}}),
          {{unicode("cutoffs"), list(edges)}}),
      {},
      {{unicode("emb_layers"), module("ModuleList", {}, {}, tables)},
          {unicode("emb_projs"), module("ParameterList", {}, input, {})}});
  Pairs cluster;
  if (const auto n = static_cast<std::int64_t>(of.cutoffs.size()); n > 0)
    cluster = tensors(floats, {{"cluster_weight", {n, of.d_embed}}, {"cluster_bias", {n}}});
  const auto softmax = module("ProjectedAdaptiveLogSoftmax", {}, cluster,
      {{unicode("out_layers"), module("ModuleList", {}, {}, rows)},
          {unicode("out_projs"), module("ParameterList", {}, narrower, {})}});
  const auto norm = [&] { return layer({d}, true); };
  const auto attention = module("Attention", {{unicode("pre_lnorm"), "\x89"}}, {},
      {{unicode("qkv_net"), layer({3 * d, d}, false)}, {unicode("r_net"), layer({d, d}, false)},
          {unicode("o_net"), layer({d, d}, false)}, {unicode("layer_norm"), norm()}});
  const auto network = module("PositionwiseFF", {}, {},
      {{unicode("CoreNet"),
           module("Sequential", {}, {},
               {{unicode("0"), layer({1, d}, true)}, {unicode("3"), layer({d, 1}, true)}})},
          {unicode("layer_norm"), norm()}});
  const auto layers = module("ModuleList", {}, {},
      {{unicode("0"), module("Layer", {}, {},
                          {{unicode("dec_attn"), attention}, {unicode("pos_ff"), network}})}});
  const auto relative = one("r_r_bias", {1, d}), content = one("r_w_bias", {1, d});
  return floats.save(module("MemTransformerLM",
      wholes({{"n_layer", 1}, {"d_model", of.d_model}, {"n_head", 1}, {"d_head", of.d_model},
          {"mem_len", 4}, {"tgt_len", 4}, {"clamp_len", -1}}),
      joined(content, relative),
      {{unicode("word_emb"), words}, {unicode("layers"), layers}, {unicode("crit"), softmax}}));
}

// transformers
// -------------------------------------------------------------------------------------

/// Returns config.json in one line, then pytorch_model.bin.
inline std::string transformers() {
  Floats floats;
  std::vector<std::pair<std::string, Shape>> shapes = {{"transformer.wte.weight", {3, 2}},
      {"transformer.wpe.weight", {4, 2}}, {"transformer.ln_f.weight", {2}},
      {"transformer.ln_f.bias", {2}}};
  for (const auto& [name, shape] :
      std::vector<std::pair<std::string, Shape>>{{"ln_1", {2}}, {"attn.c_attn", {2, 6}},
          {"attn.c_proj", {2, 2}}, {"ln_2", {2}}, {"mlp.c_fc", {2, 8}}, {"mlp.c_proj", {8, 2}}}) {
    shapes.emplace_back("transformer.h.0." + name + ".weight", shape);
    shapes.emplace_back("transformer.h.0." + name + ".bias", Shape{shape.back()});
  }
  const auto weights = tensors(floats, shapes);
  return "{\"model_type\":\"gpt2\",\"vocab_size\":3,\"n_positions\":4,\"n_embd\":2,\"n_layer\":1,\"n_head\":1}\n" +
         floats.save(ordered_dict(weights));
}

/// Returns all by name: the seeds of tests/fuzz/corpus/import.
inline std::vector<std::pair<std::string, std::string>> all() {
  TransformerXl one_table;
  one_table.div_val = 1, one_table.projections = false;
  TransformerXl plain;
  plain.cutoffs = {}, plain.div_val = 1, plain.d_embed = 1;
  return {{"nanogpt", nanogpt()}, {"nanomosaics", nanomosaics()},
      {"fairseq_plain", fairseq_plain()}, {"fairseq_adaptive", fairseq_adaptive()},
      {"xl_bands", transformer_xl()}, {"xl_table", transformer_xl(one_table)},
      {"xl_plain", transformer_xl(plain)}, {"transformers", transformers()}};
}

}  // namespace small_checkpoints
