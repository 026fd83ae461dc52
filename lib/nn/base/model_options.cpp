#include "nn/base/model_options.h"

#include "nn/base/architecture.h"

namespace nn {
namespace {

// Larger than any machine can hold; the product of two limits fits in 63 bits.
constexpr double kMostWidth = 16e6, kMostTokens = 16e6, kMostTypes = 4e9;

}  // namespace

void ShapeOptions::fields(core::FieldList& f) {
  f("layers", layers, "number of layers").between(1, 10e3);
  f("d-model", d_model, "hidden size").between(1, kMostWidth);
  f("heads", heads, "number of attention heads").between(1, kMostWidth);
  f("d-ff", d_ff, "inner size of the feed-forward layers; auto: 4 times d-model")
      .auto_or(1, kMostWidth);
  f("dropout", dropout, "dropout on embeddings and on the output of each sub-layer").fraction();
  f("attention-dropout", attention_dropout, "dropout on attention weights").fraction();
  f("activation-dropout", activation_dropout, "dropout inside the feed-forward layers").fraction();
  f("head-dropout", head_dropout, "dropout before the softmax").fraction();
  f("memory-key", memory_key, "vector used as memory key and query", {"last-ffn-input", "output"});
  f("init", init, "initialization of the parameters", {"gpt2", "fairseq", "fan-in", "depth"});
}

void VocabularyOptions::fields(core::FieldList& f) {
  f("tied", tied, "tie the softmax's weights to the input embedding");
  f("cutoffs", cutoffs,
      "adaptive input and softmax: first token id of each rarer cluster [a plain softmax]")
      .between(1, kMostTypes);
  f("div-val", factor, "adaptive: divide the embedding size by this factor from cluster to cluster")
      .between(1, kMostWidth);
  f("d-embedding", d_embedding, "adaptive: embedding size of the first cluster; auto: d-model")
      .auto_or(1, kMostWidth);
  f("tied-projections", tied_projections,
      "adaptive: with --tied, tie the projections of the clusters too");
  f("adaptive-softmax-dropout", adaptive_softmax_dropout,
      "adaptive: dropout on the projected hidden state of the rarer clusters")
      .fraction();
  f("scale-embedding", scale_embedding, "multiply embeddings by the square root of d-model");
  f("head-bias", head_bias, "add a bias to each logit");
  f("logit-softcap", logit_softcap, "softcap c of the logits s: c tanh(s / c); plain softmax only")
      .none_or_above(0, 1e6);
}

void RopeOptions::fields(core::FieldList& f) {
  f("rope-theta", theta, "rope: base of the frequencies").between(1, 1e12);
  f("rope-partial-factor", share,
      "rope: fraction of the head size that is rotated (partial rotary factor)")
      .above(0, 1);
  f("rope-scaling", scaling, "rope: scaling for sequences longer than --rope-original-positions",
      {"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  f("rope-factor", factor,
      "scaling factor of --rope-scaling: context length relative to --rope-original-positions")
      .between(1, 1e6);
  f("rope-original-positions", trained, "original context length, before --rope-scaling")
      .between(1, kMostTokens);
  f("rope-low-freq-factor", low,
      "llama3: low_freq_factor; lower frequencies are divided by --rope-factor")
      .above(0, 1e6);
  f("rope-high-freq-factor", high, "llama3: high_freq_factor; higher frequencies are unchanged")
      .above(0, 1e6);
  f("rope-beta-slow", slow_beta, "yarn: beta_slow; lower frequencies are divided by --rope-factor")
      .above(0, 1e6);
  f("rope-beta-fast", fast_beta, "yarn: beta_fast; higher frequencies are unchanged").above(0, 1e6);
  f("rope-attention-factor", length,
      "rope: multiply rotated queries and keys by this (attention_factor); auto: 1, with yarn "
      "1 + ln(factor) / 10")
      .auto_or_above(0, 1e6);
  f("rope-short-factors", factors, "longrope: short_factor; divisor of each frequency")
      .between(1e-6, 1e9);
  f("rope-long-factors", long_factors,
      "longrope: long_factor, stored for export; longer sequences are refused")
      .between(1e-6, 1e9);
  f("rope-query-growth", query_growth,
      "growth of queries beyond --rope-original-positions, stored for export; longer "
      "sequences are refused")
      .between(0, 1e6);
  f("rope-skip", skip,
      "rope: every N-th layer has no rotary embedding (NoPE); none: all layers have one")
      .none_or(1, 1 << 14);
  f("rope-local-theta", local_theta,
      "rope: base of the unscaled frequencies in layers with a window; auto: as in the other layers")
      .auto_or_above(0, 1e12);
}

void ExpertOptions::fields(core::FieldList& f) {
  f("experts", count, "mixture of experts: experts per layer; none: a dense feed-forward layer")
      .none_or(1, 4096);
  f("experts-per-token", per_token, "experts: number of experts per token (top-k)")
      .between(1, 4096);
  f("experts-normalised", normalised,
      "experts: normalize the weights of the chosen experts to sum to 1; else use the router's "
      "probabilities");
}

bool TransformerOptions::has_bias(const std::string& kind) const {
  return bias && (bias_of.empty() || core::contains(bias_of, kind));
}

void TransformerOptions::fields(core::FieldList& f) {
  f("positions", positions, "positional encoding",
      {"learned", "sinusoidal", "rope", "alibi", "none"});
  f("context", context, "learned positions: maximum sequence length").between(1, kMostTokens);
  f("norm", norm, "placement of the norms",
      {"pre", "post", "sublayer", "sandwich", "parallel", "parallel-one"});
  f("final-norm", final_norm, "add a norm after the last layer (not with --norm post)");
  f("activation", activation, "activation of the feed-forward layers",
      {"gelu", "gelu-exact", "relu", "silu"});
  f("bias", bias, "add biases to linear layers and norms");
  f("norm-epsilon", norm_epsilon, "epsilon of the norms").between(0, 1);
  own_fields(f);
}

void TransformerOptions::own_fields(core::FieldList& f) {
  f("norm-kind", norm_kind,
      "layer: LayerNorm; rms: RMSNorm; rms-one: RMSNorm multiplied by 1 + weight",
      {"layer", "rms", "rms-one"});
  f("feed-forward", feed_forward, "plain: two linear layers; gated: gated MLP (GLU, SwiGLU)",
      {"plain", "gated"});
  f("bias-of", bias_of, "with --bias: modules that have biases [all]",
      {"qkv", "output", "feed-forward", "norm"});
  f("kv-heads", kv_heads, "key-value heads (grouped-query attention); auto: --heads")
      .auto_or(1, kMostWidth);
  f("d-head", d_head, "head size; auto: d-model / heads").auto_or(1, kMostWidth);
  f("qk-norm", qk_norm, "norm of queries and keys: per head, or over the whole vector",
      {"none", "head", "whole"});
  f("attention-window", attention_window,
      "sliding window of attention in tokens, the current one included; several numbers apply "
      "to the layers in turn; none: all tokens")
      .none_or(1, kMostTokens);
  f("attention-scale", attention_scale, "scale of the attention scores; auto: 1 / sqrt(head size)")
      .auto_or_above(0, 1e6);
  f("attention-softcap", attention_softcap, "softcap c of the attention scores s: c tanh(s / c)")
      .none_or_above(0, 1e6);
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
  return core::contains(layers, layer + 1);
}

void MemoryLayerOptions::fields(core::FieldList& f) {
  f("memory-layer", kind,
      "layers that look up rows in a large learned table; product-key: in place of "
      "feed-forward networks; ngram (transformer): by the last two and three tokens, before "
      "the attention",
      {"none", "product-key", "ngram"});
  f("memory-layers", layers, "layers with a memory layer, counted from 1 [the middle layer]")
      .between(1, 10e3);
  f("memory-layer-heads", heads, "heads (lookups per token) of each memory layer").between(1, 1024);
  f("memory-layer-keys", keys, "product-key: number of half keys N; there are N x N values")
      .between(1, 16384);
  f("memory-layer-top-k", top_k, "product-key: values read per head, at most --memory-layer-keys")
      .between(1, 1024);
  f("memory-layer-d-key", d_key, "product-key: size of a key, even; auto: about half of d-model")
      .auto_or(1, kMostWidth);
  f("memory-layer-shared", shared, "product-key: share the values among the memory layers");
  f("memory-layer-gate", gate,
      "product-key: multiply the output by a silu gate of the input, and project it");
  f("memory-layer-rows", rows,
      "ngram: rows of each table; each head has one table for bigrams and one for trigrams")
      .between(1, 1e9);
  f("memory-layer-width", d_ngram,
      "ngram: embedding size for bigrams, and for trigrams, over all heads; auto: d-model")
      .auto_or(1, kMostWidth);
}

void LstmOptions::fields(core::FieldList& f) {
  f("d-recurrent", d_recurrent, "size of the LSTM's cells; auto: d-model").auto_or(1, kMostWidth);
}

void GlaOptions::fields(core::FieldList& f) {
  f("gla-update", update,
      "gla: update of a head's state: sum: add the outer product of key and value; delta: delta rule",
      {"sum", "delta"});
  f("gla-decay", decay,
      "gla: decay of a head's state: gated: learned from the input; fixed: constant, with "
      "rotary keys (RetNet); none: no decay",
      {"gated", "fixed", "none"});
  f("delta-key-heads", key_heads, "delta: heads of queries and keys; auto: as many as of values")
      .auto_or(1, kMostWidth);
  f("delta-value-heads", value_heads, "delta: heads of values; auto: --heads")
      .auto_or(1, kMostWidth);
  f("delta-d-key", d_key,
      "delta: size of a head's keys; queries are then divided by its square root; auto: half of "
      "d-model / heads, not divided")
      .auto_or(1, kMostWidth);
  f("delta-d-value", d_value, "delta: size of a head's values; auto: d-model / heads")
      .auto_or(1, kMostWidth);
  f("gla-convolution", convolution,
      "mamba, mamba2, kda, h3, hyena, --gla-update delta: kernel size of the short convolutions of "
      "queries, keys and values; 1: no convolution")
      .between(1, 64);
}

void StateMemoryOptions::fields(core::FieldList& f) {
  f("state-memory", kind,
      "gla, lstm: past states that layers read: segments: at segment ends; fenwick: per tree level",
      {"none", "segments", "fenwick"});
  f.rest_needs("state-memory");
  f("state-every", every, "segments: keep the state after every N tokens").between(1, kMostTokens);
  f("state-segments", segments, "segments: number of newest states kept").between(1, 65536);
  f("state-levels", levels, "fenwick: tree levels; the last has all older tokens").between(2, 48);
}

void Mamba2Options::fields(core::FieldList& f) {
  f("state-size", state, "mamba2: rows of each head's state: size of keys and queries")
      .between(1, kMostWidth);
  f("expand", expand, "mamba, mamba2: size of the values, in multiples of d-model").between(1, 64);
}

void MixerOptions::fields(core::FieldList& f) {
  f("mixer", list,
      "hybrid: comma-separated mixers, repeated over the layers: gla, delta, retnet, linear, "
      "gated-attention, or an architecture with a state of constant size");
  f("mixer-window", window, "window: tokens that a token attends to, itself included")
      .between(1, kMostTokens);
  f("channel-state", state, "mamba, s4d, h3: size of each channel's state").between(1, kMostWidth);
  f("filter-length", filter, "hyena: length of the long convolutions in tokens")
      .between(1, kMostTokens);
}

void MosaicOptions::fields(core::FieldList& f) {
  f("persistent-slots", persistent_slots,
      "learned key-value pairs of each persistent memory unit; auto: 3.5 times d-model")
      .auto_or(1, kMostWidth);
  f("scale-output", scale_output,
      "mosaic: divide the hidden state before the softmax by the square root of d-model");
}

void Mosaic2Options::fields(core::FieldList& f) {
  f("short-term", short_term, "mosaic2: size of the short-term memory: the newest key-value pairs")
      .between(1, kMostTokens);
  f("long-term-delay", delay, "mosaic2: delay in tokens before a pair enters the long-term memory")
      .between(1, kMostTokens);
  f("long-term-delay-most", most_delay,
      "mosaic2: largest delay; each training batch draws its delay between --long-term-delay "
      "and this")
      .between(1, kMostTokens);
}

void LayerMemoryOptions::fields(core::FieldList& f) {
  f("layer-memory", layer_memory,
      "memory length of each layer in tokens: one number, one per layer, or a pattern such as "
      "'long=2304 short=128 place=interleaved:4'");
  f("same-length", same_length,
      "limit the attention of every token to the memory length (same_length)", {"off", "on"});
}

void TransformerXlOptions::fields(core::FieldList& f) {
  f("clamp-length", clamp_length, "clamp relative distances at N (clamp_len)")
      .none_or(1, kMostTokens);
  f("shared-biases", shared_biases, "share the content and position biases among the layers");
}

void SruppOptions::fields(core::FieldList& f) {
  f("d-projection", d_projection,
      "projection size of SRU++'s attention; auto: a quarter of d-model")
      .auto_or(1, kMostWidth);
  f("attention-every", attention_every,
      "attention in every k-th layer, counted from the last; none: in no layer")
      .none_or(1, 10e3);
  f("attention-last", attention_last,
      "attention in the last N layers only; none: by --attention-every")
      .none_or(1, 10e3);
  f("forget-bias", forget_bias, "initial value of the forget bias").between(-1000, 1000);
  f("highway-bias", highway_bias, "initial value of the highway bias").between(-1000, 1000);
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
  f.group("Memory of states", state_memory);
  f.group("Mamba-2", mamba2);
  f.group("Mixers", mixers);
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
