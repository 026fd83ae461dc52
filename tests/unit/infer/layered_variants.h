#pragma once
// Every variant of the architectures whose loops are made of parts, for engine_model().

#include <functional>
#include <utility>
#include <vector>

#include "nn/base/model_options.h"

inline std::vector<std::pair<const char*, std::function<void(nn::ModelOptions&)>>>
layered_variants() {
  using Options = nn::ModelOptions;
  return {
      {"mosaic", [](Options& o) { o.arch = "mosaic"; }},
      {"mosaic, odd widths, slots, scaled output, output key",
          [](Options& o) {
            o.arch = "mosaic", o.shape.d_model = 18, o.shape.heads = 3;
            o.mosaic.persistent_slots = 13, o.mosaic.scale_output = true;
            o.shape.memory_key = "output";
          }},
      {"mosaic2",
          [](Options& o) { o.arch = "mosaic2", o.mosaic2.short_term = 6, o.mosaic2.delay = 3; }},
      {"mosaic2, memories that overlap not, odd widths, output key",
          [](Options& o) {
            o.arch = "mosaic2", o.shape.d_model = 18, o.shape.heads = 3, o.shape.d_ff = 37;
            o.mosaic2.short_term = 4, o.mosaic2.delay = 9, o.shape.memory_key = "output";
          }},
      {"gla", [](Options& o) { o.arch = "gla"; }},
      {"gla, odd widths, relu, no bias, output key, adaptive",
          [](Options& o) {
            o.arch = "gla", o.shape.d_model = 18, o.shape.heads = 3, o.shape.d_ff = 37;
            o.transformer.activation = "relu", o.transformer.bias = false;
            o.shape.memory_key = "output", o.vocabulary.cutoffs = {10, 20}, o.vocabulary.factor = 2;
          }},
      {"gla, RetNet's decays and rotations",
          [](Options& o) { o.arch = "gla", o.gla.decay = "fixed"; }},
      {"gla without decays", [](Options& o) { o.arch = "gla", o.gla.decay = "none"; }},
      {"gla, gated delta rule", [](Options& o) { o.arch = "gla", o.gla.update = "delta"; }},
      {"gla, delta rule without decays and convolution, odd widths",
          [](Options& o) {
            o.arch = "gla", o.gla.update = "delta", o.gla.decay = "none", o.gla.convolution = 1;
            o.shape.d_model = 18, o.shape.heads = 3;
          }},
      {"lstm", [](Options& o) { o.arch = "lstm"; }},
      {"lstm, another width, three layers, untied",
          [](Options& o) {
            o.arch = "lstm", o.shape.d_model = 18, o.lstm.d_recurrent = 37, o.shape.layers = 3;
            o.vocabulary.tied = false;
          }},
      {"srupp", [](Options& o) { o.arch = "srupp", o.layer_memory.layer_memory = "7"; }},
      {"srupp, a layer without attention, odd widths, same length, output key",
          [](Options& o) {
            o.arch = "srupp", o.shape.layers = 3, o.shape.d_model = 21, o.srupp.d_projection = 6;
            o.srupp.attention_every = 2, o.layer_memory.layer_memory = "3,4,5";
            o.layer_memory.same_length = "on", o.shape.memory_key = "output";
            o.srupp.forget_bias = 1, o.srupp.highway_bias = -2;
          }},
      {"transformer-xl",
          [](Options& o) { o.arch = "transformer-xl", o.layer_memory.layer_memory = "30,5"; }},
      {"transformer-xl, post-norm, own biases, clamped, same length, odd widths",
          [](Options& o) {
            o.arch = "transformer-xl", o.shape.d_model = 21, o.shape.heads = 3, o.shape.d_ff = 37;
            o.transformer.norm = "post", o.transformer.activation = "relu";
            o.transformer_xl.shared_biases = false, o.transformer_xl.clamp_length = 6;
            o.layer_memory.layer_memory = "9", o.layer_memory.same_length = "on";
          }},
      {"transformer-xl without memory, no final norm, scaled",
          [](Options& o) {
            o.arch = "transformer-xl", o.layer_memory.layer_memory = "none";
            o.transformer.final_norm = false, o.vocabulary.scale_embedding = true;
            o.shape.memory_key = "output";
          }},
  };
}
