#pragma once
// Every variant of transformers and encoder-decoders, for engine_model().

#include <functional>
#include <utility>
#include <vector>

#include "nn/base/model_options.h"

inline std::vector<std::pair<const char*, std::function<void(nn::ModelOptions&)>>>
transformer_variants() {
  using Options = nn::ModelOptions;
  return {
      {"gpt2", [](Options&) {}},
      {"odd widths",
          [](Options& o) { o.shape.d_model = 18, o.shape.heads = 3, o.shape.d_ff = 37; }},
      {"post-norm, relu, sinusoidal, no bias",
          [](Options& o) {
            o.transformer.norm = "post", o.transformer.activation = "relu";
            o.transformer.positions = "sinusoidal", o.transformer.bias = false;
          }},
      {"rope, exact gelu, untied, output key",
          [](Options& o) {
            o.transformer.positions = "rope", o.transformer.activation = "gelu-exact";
            o.vocabulary.tied = false, o.shape.memory_key = "output";
          }},
      {"alibi, three heads",
          [](Options& o) {
            o.transformer.positions = "alibi", o.shape.heads = 3, o.shape.d_model = 48;
          }},
      {"no positions, adaptive, scaled, no final norm",
          [](Options& o) {
            o.transformer.positions = "none", o.transformer.final_norm = false;
            o.vocabulary.cutoffs = {10, 20}, o.vocabulary.factor = 2;
            o.vocabulary.scale_embedding = true;
          }},
      {"Llama's: grouped queries, RMSNorm, gated, untied",
          [](Options& o) {
            o.shape.d_model = 48, o.shape.heads = 6, o.shape.d_ff = 37, o.vocabulary.tied = false;
            o.transformer.positions = "rope", o.transformer.norm_kind = "rms";
            o.transformer.feed_forward = "gated", o.transformer.activation = "silu";
            o.transformer.bias = false, o.transformer.kv_heads = 2;
            o.transformer.rope = {.theta = 500, .scaling = "llama3", .factor = 8, .trained = 64};
          }},
      {"Qwen's: wide heads, their norms, biases of some",
          [](Options& o) {
            o.shape.d_model = 18, o.shape.heads = 4, o.transformer.d_head = 10;
            o.transformer.positions = "rope", o.transformer.norm_kind = "rms";
            o.transformer.feed_forward = "gated", o.transformer.activation = "silu";
            o.transformer.bias_of = {"qkv"}, o.transformer.kv_heads = 1;
            o.transformer.qk_norm = "head";
          }},
      {"OLMo 2's: norms of what sub-layers give, of all queries",
          [](Options& o) {
            o.transformer.norm = "sublayer", o.transformer.qk_norm = "whole";
            o.transformer.positions = "rope", o.transformer.norm_kind = "rms";
            o.transformer.bias = false, o.transformer.kv_heads = 1;
          }},
      {"GPT-NeoX's: parallel, a quarter turned",
          [](Options& o) {
            o.transformer.norm = "parallel", o.transformer.activation = "gelu-exact";
            o.transformer.positions = "rope", o.transformer.rope.share = 0.25;
          }},
      {"sandwich, yarn, a window in every other layer",
          [](Options& o) {
            o.transformer.norm = "sandwich", o.transformer.positions = "rope";
            o.transformer.attention_window = {5, 0}, o.transformer.qk_norm = "head";
            o.transformer.rope = {.scaling = "yarn", .factor = 4, .trained = 32};
          }},
      {"alibi, a window, RMSNorm with biases, plain silu",
          [](Options& o) {
            o.transformer.positions = "alibi", o.transformer.attention_window = {7};
            o.transformer.norm_kind = "rms", o.transformer.activation = "silu";
            o.transformer.bias_of = {"norm", "output", "feed-forward"};
          }},
      {"Gemma's: sandwich of 1 + weight, bounded scores, two bases of angles",
          [](Options& o) {
            o.transformer.norm = "sandwich", o.transformer.norm_kind = "rms-one";
            o.transformer.positions = "rope", o.transformer.feed_forward = "gated";
            o.transformer.bias = false, o.vocabulary.scale_embedding = true;
            o.transformer.attention_window = {5, 0}, o.transformer.qk_norm = "head";
            o.transformer.attention_scale = 0.4, o.transformer.attention_softcap = 2;
            o.vocabulary.logit_softcap = 3;
            o.transformer.rope = {
                .theta = 500, .scaling = "linear", .factor = 4, .local_theta = 20};
          }},
      {"encoder-decoder, sinusoidal, scaled",
          [](Options& o) {
            o.arch = "encoder-decoder", o.transformer.positions = "sinusoidal";
            o.transformer.activation = "relu", o.vocabulary.scale_embedding = true;
          }},
      {"encoder-decoder, odd widths, post-norm, learned, no bias",
          [](Options& o) {
            o.arch = "encoder-decoder", o.transformer.norm = "post", o.transformer.bias = false;
            o.shape.d_model = 18, o.shape.heads = 3, o.shape.d_ff = 37;
          }},
      {"encoder-decoder, rope, output key",
          [](Options& o) {
            o.arch = "encoder-decoder", o.transformer.positions = "rope";
            o.shape.memory_key = "output";
          }},
  };
}
