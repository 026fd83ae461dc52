#include "nn/base/model_options.h"

#include <algorithm>

#include "nn/base/arch_facts.h"

namespace nn {
namespace {

// Larger than any machine can hold; the product of two limits fits in 63 bits.
constexpr double kMostWidth = 16e6, kMostTokens = 16e6, kMostTypes = 4e9;

}  // namespace

void ShapeOptions::fields(core::FieldList& f) {
  f("layers", layers, "number of layers").between(1, 10e3);
  f("d-model", d_model, "width of the hidden vectors").between(1, kMostWidth);
  f("heads", heads, "attention heads").between(1, kMostWidth);
  f("d-ff", d_ff, "width inside the feed-forward networks; 0: 4 times d-model")
      .between(0, kMostWidth);
  f("dropout", dropout, "dropout on embeddings and on what is added to the residual stream")
      .at_least(0)
      .below(1);
  f("attention-dropout", attention_dropout, "dropout on attention weights").at_least(0).below(1);
  f("activation-dropout", activation_dropout, "dropout inside the feed-forward networks")
      .at_least(0)
      .below(1);
  f("head-dropout", head_dropout, "dropout on the output before the softmax").at_least(0).below(1);
  f("memory-key", memory_key, "what keys the memories", {"last-ffn-input", "output"});
  f("init", init, "first values of the parameters", {"gpt2", "fairseq", "fan-in", "depth"});
}

void VocabularyOptions::fields(core::FieldList& f) {
  f("tied", tied, "the softmax shares the input embedding");
  f("cutoffs", cutoffs,
    "adaptive input and softmax: first id of each band of rarer words; none: a plain softmax")
      .between(1, kMostTypes);
  f("factor", factor, "each band's vectors are narrower by this factor").between(1, kMostWidth);
  f("d-embedding", d_embedding, "with --cutoffs: width of the first band's vectors; 0: d-model")
      .between(0, kMostWidth);
  f("tied-projections", tied_projections, "the bands' projections are shared too, where tied");
  f("tail-dropout", tail_dropout,
    "dropout on the projected output of the adaptive softmax's rarer bands")
      .at_least(0)
      .below(1);
  f("scale-embedding", scale_embedding, "multiply embeddings by the square root of d-model");
  f("head-bias", head_bias, "the softmax's scores have a bias each");
  f("logit-cap", logit_cap, "plain softmax: scores s become c tanh(s / c); 0: they stay")
      .between(0, 1e6);
}

void RopeOptions::fields(core::FieldList& f) {
  f("rope-theta", theta, "rope: base of the angles").at_least(1).at_most(1e12);
  f("rope-share", share, "rope: share of a head's width that turns").above(0).at_most(1);
  f("rope-scaling", scaling, "rope: how rows longer than --rope-trained are reached",
    {"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  f("rope-factor", factor, "--rope-scaling: times as long as --rope-trained")
      .at_least(1)
      .at_most(1e6);
  f("rope-trained", trained, "--rope-scaling: tokens of a row before it").between(1, kMostTokens);
  f("rope-low", low, "llama3: angles of fewer turns in so long a row are divided by the factor")
      .above(0)
      .at_most(1e6);
  f("rope-high", high, "llama3: angles of more turns stay").above(0).at_most(1e6);
  f("rope-slow", slow_beta, "yarn: as --rope-low").above(0).at_most(1e6);
  f("rope-fast", fast_beta, "yarn: as --rope-high").above(0).at_most(1e6);
  f("rope-length", length,
    "rope: what turned queries and keys are multiplied by; 0: 1, yarn: 1 + ln(factor) / 10")
      .between(0, 1e6);
  f("rope-factors", factors, "longrope: what the angle of each pair is divided by")
      .between(1e-6, 1e9);
  f("rope-long-factors", long_factors, "longrope: the same of longer rows, which are refused here")
      .between(1e-6, 1e9);
  f("rope-query-growth", query_growth, "with rows behind --rope-trained, which are refused here")
      .between(0, 1e6);
  f("rope-skip", skip, "rope: each so-manieth layer turns nothing; 0: all turn")
      .between(0, 1 << 14);
  f("rope-local-theta", local_theta,
    "rope: base of the angles in layers with a window, which nothing scales; 0: as in the others")
      .between(0, 1e12);
}

void ExpertOptions::fields(core::FieldList& f) {
  f("experts", count,
    "feed-forward networks of each layer, of which a router chooses some for each token; 0: one "
    "network for all tokens")
      .between(0, 4096);
  f("experts-per-token", per_token, "--experts: how many read a token").between(1, 4096);
  f("experts-normalised", normalised,
    "--experts: the weights of the chosen ones sum to 1; else they are the router's probabilities");
}

bool TransformerOptions::has_bias(const std::string& kind) const {
  return bias &&
         (bias_of.empty() || std::find(bias_of.begin(), bias_of.end(), kind) != bias_of.end());
}

void TransformerOptions::fields(core::FieldList& f) {
  f("positions", positions, "how tokens know their place",
    {"learned", "sinusoidal", "rope", "alibi", "none"});
  f("context", context, "learned positions: most tokens of a row").between(1, kMostTokens);
  f("norm", norm, "where each sub-layer has its norm",
    {"pre", "post", "sublayer", "sandwich", "parallel", "parallel-one"});
  f("final-norm", final_norm, "one more norm after the last layer, but with --norm post");
  f("activation", activation, "of the feed-forward networks",
    {"gelu", "gelu-exact", "relu", "silu"});
  f("bias", bias, "biases in matrices and norms");
  f("norm-epsilon", norm_epsilon, "added to the variance in norms").between(0, 1);
  own_fields(f);
}

void TransformerOptions::own_fields(core::FieldList& f) {
  f("norm-kind", norm_kind,
    "LayerNorm, or RMSNorm, which subtracts no mean; rms-one: times 1 + weight",
    {"layer", "rms", "rms-one"});
  f("feed-forward", feed_forward, "gated: the activation of one half times the other",
    {"plain", "gated"});
  f("bias-of", bias_of, "with --bias: what has biases; none given: all of them",
    {"qkv", "output", "feed-forward", "norm"});
  f("kv-heads", kv_heads, "heads of keys and values, each for several of queries; 0: --heads")
      .between(0, kMostWidth);
  f("d-head", d_head, "width of a head; 0: d-model / heads").between(0, kMostWidth);
  f("qk-norm", qk_norm, "norm of queries and keys: of each head, or of all together",
    {"none", "head", "whole"});
  f("attention-window", attention_window,
    "tokens that a layer sees, itself among them; "
    "of several numbers each layer takes the next; 0: all")
      .between(0, kMostTokens);
  f("attention-scale", attention_scale,
    "what products of queries and keys are multiplied by; 0: 1 / sqrt(width of a head)")
      .between(0, 1e6);
  f("attention-cap", attention_cap, "scores s of attention become c tanh(s / c); 0: they stay")
      .between(0, 1e6);
  rope.fields(f);
  experts.fields(f);
}

HeadShape head_shape(const ShapeOptions& shape, const TransformerOptions& options) {
  const auto width = options.d_head > 0 ? options.d_head : shape.d_model / shape.heads;
  return {shape.heads, options.kv_heads > 0 ? options.kv_heads : shape.heads, width,
          static_cast<std::int64_t>(static_cast<double>(width) * options.rope.share)};
}

bool MemoryLayerOptions::has(std::int64_t layer, std::int64_t of) const {
  if (!any()) return false;
  if (layers.empty()) return layer == (of - 1) / 2;
  return std::find(layers.begin(), layers.end(), layer + 1) != layers.end();
}

void MemoryLayerOptions::fields(core::FieldList& f) {
  f("memory-layer", kind,
    "a large table that some layers look rows up in; product-key: in the place of their "
    "feed-forward networks; ngram (transformer): by the last two and three tokens, before them",
    {"none", "product-key", "ngram"});
  f("memory-layers", layers, "which layers, from 1, the lowest; none given: the middle one")
      .between(1, 10e3);
  f("memory-layer-heads", heads, "lookups of a token in each such layer").between(1, 1024);
  f("memory-layer-keys", keys, "product-key: half keys of a side; there are as many values squared")
      .between(1, 16384);
  f("memory-layer-top-k", top_k, "product-key: values that a head reads; at most the half keys")
      .between(1, 1024);
  f("memory-layer-d-key", d_key, "product-key: width of a key, even; 0: about half of d-model")
      .between(0, kMostWidth);
  f("memory-layer-shared", shared, "product-key: the layers share the values");
  f("memory-layer-gate", gate,
    "product-key: what is read is multiplied by a silu of the input, and projected");
  f("memory-layer-rows", rows,
    "ngram: rows of each table; a head has one for pairs, one for triples")
      .between(1, 1e9);
  f("memory-layer-width", d_ngram,
    "ngram: numbers read for pairs, and for triples, all heads together; 0: d-model")
      .between(0, kMostWidth);
}

void LstmOptions::fields(core::FieldList& f) {
  f("d-recurrent", d_recurrent, "width of the LSTM's cells; 0: d-model").between(0, kMostWidth);
}

void GlaOptions::fields(core::FieldList& f) {
  f("gla-update", update,
    "gla: a step adds its value to a head's matrix; "
    "or how far that is from what the matrix has for its key (delta rule)",
    {"sum", "delta"});
  f("gla-decay", decay,
    "gla: how much of the matrix a step keeps: learned, of the input; "
    "fixed, and keys turn with their place (RetNet); all",
    {"gated", "fixed", "none"});
  f("gla-convolution", convolution,
    "--gla-update delta: "
    "steps that convolutions of queries, keys and values see; 1: no convolution")
      .between(1, 64);
}

void MosaicOptions::fields(core::FieldList& f) {
  f("persistent-slots", persistent_slots,
    "learned pairs of each persistent memory unit; 0: 3.5 times d-model")
      .between(0, kMostWidth);
  f("scale-output", scale_output,
    "mosaic: divide the output before the softmax by the square root of d-model");
}

void Mosaic2Options::fields(core::FieldList& f) {
  f("short-term", short_term, "mosaic2: newest pairs, which the short-term memory holds")
      .between(1, kMostTokens);
  f("long-term-delay", delay,
    "mosaic2: tokens back to the newest pair that the long-term memory holds")
      .between(1, kMostTokens);
  f("long-term-delay-most", most_delay,
    "mosaic2: each batch of training draws the delay from --long-term-delay to this")
      .between(1, kMostTokens);
}

void LayerMemoryOptions::fields(core::FieldList& f) {
  f("layer-memory", layer_memory,
    "past tokens each layer keeps: numbers, or as 'long=2304 short=128 place=interleaved:4'");
  f("same-length", same_length, "a token sees no more before it than its layer keeps",
    {"off", "on"});
}

void TransformerXlOptions::fields(core::FieldList& f) {
  f("clamp-length", clamp_length, "farther tokens count as so far away; 0: no bound")
      .between(0, kMostTokens);
  f("shared-biases", shared_biases, "all layers share the content and the position bias");
}

void SruppOptions::fields(core::FieldList& f) {
  f("d-projection", d_projection, "width of SRU++'s attention; 0: a quarter of d-model")
      .between(0, kMostWidth);
  f("attention-every", attention_every,
    "every k-th layer of SRU++ attends, the last included; 0: none")
      .between(0, 10e3);
  f("attention-last", attention_last,
    "only so many of SRU++'s last layers attend; 0: by --attention-every")
      .between(0, 10e3);
  f("forget-bias", forget_bias, "first value of the SRU's forget bias").between(-1000, 1000);
  f("highway-bias", highway_bias, "first value of the SRU's highway bias").between(-1000, 1000);
}

void ModelOptions::fields(core::FieldList& f) {
  const auto group = f.group("Model");
  f("arch", arch, "architecture", architecture_names());
  shape.fields(f);
  f.group("Vocabulary", vocabulary);
  f.group("Transformer", transformer);
  f.group("Memory layers", memory_layer);
  f.group("LSTM", lstm);
  f.group("Gated linear attention", gla);
  {
    const auto in_mosaics = f.group("Memory Mosaics");
    mosaic.fields(f);
    mosaic2.fields(f);
  }
  f.group("Memory of layers", layer_memory);
  f.group("Transformer-XL", transformer_xl);
  f.group("SRU++", srupp);
}

}  // namespace nn
