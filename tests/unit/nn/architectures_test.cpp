// Checks every property for every architecture of the registry, in every variant listed here.

#include <doctest/doctest.h>

#include <functional>
#include <utility>

#include "nn/base/architecture.h"
#include "properties.h"

namespace {

using Change = std::function<void(nn::ModelOptions&)>;

/// The variants of architectures besides their defaults, one per line.
const std::vector<std::pair<std::string, Change>> kVariants = {
    {"transformer", [](auto& o) { o.transformer.positions = "sinusoidal"; }},
    {"transformer", [](auto& o) { o.transformer.positions = "rope"; }},
    {"transformer", [](auto& o) { o.transformer.positions = "alibi"; }},
    {"transformer", [](auto& o) { o.transformer.positions = "none"; }},
    {"transformer", [](auto& o) { o.transformer.norm = "post"; }},
    {"transformer", [](auto& o) { o.shape.memory_key = "output"; }},
    {"transformer",
        [](auto& o) {
          o.vocabulary.cutoffs = {4, 9};
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.positions = "rope", o.transformer.norm_kind = "rms";
          o.transformer.feed_forward = "gated", o.transformer.activation = "silu";
          o.transformer.bias = false, o.transformer.kv_heads = 1;
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.norm = "sublayer", o.transformer.qk_norm = "whole";
          o.transformer.positions = "rope", o.transformer.rope.share = 0.5;
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.norm = "parallel", o.transformer.attention_window = {3, 0};
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.norm = "sandwich", o.transformer.qk_norm = "head";
          o.transformer.attention_window = {2, 0}, o.transformer.positions = "alibi";
        }},
    {"transformer",
        [](auto& o) {
          o.memory_layer = {
              .kind = "product-key", .layers = {1, 2}, .heads = 2, .keys = 5, .top_k = 3};
        }},
    {"transformer",
        [](auto& o) {
          o.memory_layer = {
              .kind = "product-key", .layers = {2}, .heads = 1, .keys = 4, .top_k = 4};
          o.memory_layer.shared = o.memory_layer.gate = false, o.transformer.norm = "parallel";
          o.transformer.positions = "rope";
        }},
    {"transformer",
        [](auto& o) {
          o.memory_layer = {.kind = "ngram", .layers = {1, 2}, .heads = 2, .rows = 7};
          o.transformer.positions = "rope";
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.experts = {.count = 5, .per_token = 2};
          o.transformer.positions = "rope", o.transformer.feed_forward = "gated";
        }},
    {"transformer",
        [](auto& o) {
          o.transformer.experts = {.count = 3, .per_token = 3, .normalised = false};
          o.memory_layer = {.kind = "product-key", .layers = {2}, .keys = 4, .top_k = 4};
        }},
    {"transformer-xl", [](auto& o) { o.transformer.norm = "post"; }},
    {"transformer-xl",
        [](auto& o) {
          o.memory_layer = {.kind = "product-key", .layers = {1, 2}, .keys = 4, .top_k = 3};
        }},
    {"transformer-xl", [](auto& o) { o.layer_memory.layer_memory = "16,9"; }},
    {"transformer-xl",
        [](auto& o) { o.transformer_xl.clamp_length = 3, o.transformer_xl.shared_biases = false; }},
    {"lstm", [](auto& o) { o.lstm.d_recurrent = 5; }},
    {"lstm", [](auto& o) { o.shape.layers = 1; }},
    {"lstm",
        [](auto& o) {
          o.state_memory = {"segments", 3, 2, 2}, o.lstm.d_recurrent = 5;
        }},
    {"lstm",
        [](auto& o) {
          o.state_memory = {"fenwick", 1, 1, 6};
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"segments", 2, 2, 2};
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"segments", 3, 16, 2}, o.gla.update = "delta";
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"segments", 2, 3, 2}, o.gla.decay = "fixed";
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"fenwick", 1, 1, 3};
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"fenwick", 1, 1, 12}, o.gla.update = "delta";
        }},
    {"gla",
        [](auto& o) {
          o.state_memory = {"fenwick", 1, 1, 12}, o.gla.decay = "fixed";
        }},
    {"hybrid",
        [](auto& o) {
          o.mixers.list = "delta,retnet,linear,window", o.shape.layers = 4;
          o.state_memory = {"fenwick", 1, 1, 4};
        }},
    {"gla", [](auto& o) { o.shape.heads = 1, o.transformer.bias = false; }},
    {"gla", [](auto& o) { o.shape.memory_key = "output"; }},
    {"gla", [](auto& o) { o.gla.decay = "fixed"; }},
    {"gla",
        [](auto& o) {
          o.memory_layer = {.kind = "product-key", .layers = {2}, .keys = 4, .top_k = 3};
          o.gla.update = "delta";
        }},
    {"gla", [](auto& o) { o.gla.decay = "none"; }},
    {"gla", [](auto& o) { o.gla.update = "delta"; }},
    {"gla", [](auto& o) { o.gla.update = "delta", o.gla.decay = "none", o.shape.heads = 1; }},
    {"gla", [](auto& o) { o.gla.update = "delta", o.gla.convolution = 1; }},
    {"mamba2", [](auto& o) { o.gla.convolution = 1, o.mamba2.state = 3; }},
    {"mamba2",
        [](auto& o) {
          o.shape.heads = 4, o.mamba2.expand = 1, o.mamba2.state = 7;
          o.shape.memory_key = "output";
        }},
    {"rwkv7", [](auto& o) { o.shape.heads = 4, o.transformer.bias = false, o.shape.layers = 3; }},
    {"rwkv7", [](auto& o) { o.shape.memory_key = "output", o.shape.layers = 1; }},
    {"mamba", [](auto& o) { o.gla.convolution = 1, o.mamba2.expand = 1, o.mixers.state = 2; }},
    {"kda", [](auto& o) { o.gla.convolution = 1, o.shape.memory_key = "output"; }},
    {"hybrid", [](auto& o) { o.mixers.list = "window,mamba2", o.mixers.window = 3; }},
    {"hybrid",
        [](auto& o) {
          o.mixers.list = "gated-attention,delta", o.transformer.norm_kind = "rms";
          o.gla.key_heads = 1, o.gla.value_heads = 3, o.gla.d_key = 4, o.gla.d_value = 2;
          o.transformer.kv_heads = 1, o.transformer.d_head = 4, o.transformer.rope.share = 0.5;
        }},
    {"hybrid", [](auto& o) { o.mixers.list = "gated-attention", o.transformer.bias = false; }},
    {"hybrid", [](auto& o) { o.mixers.list = "rwkv7,delta", o.shape.layers = 4; }},
    {"hybrid", [](auto& o) { o.mixers.list = "window,retnet", o.mixers.window = 1; }},
    {"rwkv4", [](auto& o) { o.shape.memory_key = "output", o.shape.layers = 1; }},
    {"s4d", [](auto& o) { o.mixers.state = 2, o.shape.heads = 3, o.transformer.bias = false; }},
    {"h3", [](auto& o) { o.gla.convolution = 1, o.shape.memory_key = "output"; }},
    {"hyena", [](auto& o) { o.gla.convolution = 1, o.mixers.filter = 7; }},
    {"hyena", [](auto& o) { o.mixers.filter = 1, o.gla.convolution = 8; }},
    {"hybrid", [](auto& o) { o.mixers.list = "rwkv4,hyena,s4d,h3", o.shape.layers = 4; }},
    {"mosaic", [](auto& o) { o.shape.memory_key = "output"; }},
    {"mosaic",
        [](auto& o) {
          o.mosaic.persistent_slots = 3;
          o.shape.layers = 3;
        }},
    {"mosaic2", [](auto& o) { o.mosaic2.short_term = 3, o.mosaic2.delay = 2; }},
    {"mosaic2",
        [](auto& o) {
          o.memory_layer = {.kind = "product-key", .layers = {1}, .keys = 4, .top_k = 3};
        }},
    {"mosaic2",
        [](auto& o) {
          o.mosaic2.short_term = 1, o.mosaic2.delay = 4;
          o.shape.memory_key = "output", o.shape.layers = 3;
        }},
    {"mosaic2", [](auto& o) { o.mosaic2.short_term = 4, o.mosaic2.delay = 1, o.shape.heads = 1; }},
    {"srupp", [](auto& o) { o.srupp.attention_last = 1, o.shape.heads = 1; }},
    {"srupp", [](auto& o) { o.srupp.attention_every = 0, o.shape.memory_key = "output"; }},
    {"encoder-decoder", [](auto& o) { o.transformer.norm = "post"; }},
};

}  // namespace

DOCTEST_TEST_CASE(
    "every architecture is causal, streams, and is blind to padding and to other rows") {
  for (const auto& arch : nn::architecture_names())
    properties::check_all(arch, properties::small_options(arch));
}

DOCTEST_TEST_CASE("so is every variant") {
  for (std::size_t i = 0; i < kVariants.size(); ++i) {
    auto options = properties::small_options(kVariants[i].first);
    kVariants[i].second(options);
    properties::check_all(kVariants[i].first + ", variant " + std::to_string(i), options);
  }
}

DOCTEST_TEST_CASE(
    "weights in bfloat16: each architecture and variant is near the same weights in float64") {
  auto variants = kVariants;
  for (const auto& arch : nn::architecture_names()) variants.emplace_back(arch, [](auto&) {});
  for (const auto& [arch, vary] : variants) {
    if (nn::arch_facts(arch).reads_source) continue;
    DOCTEST_CAPTURE(arch);
    auto options = properties::small_options(arch);
    vary(options);
    const auto model = properties::strong_model(options);
    const torch::NoGradGuard no_grad;
    const auto batch = properties::batch_of({properties::random_ids(24, 1)});
    model->to(torch::kBFloat16);
    const auto narrow = model->architecture->forward(batch, nullptr).output.to(torch::kFloat64);
    model->to(torch::kFloat64);
    const auto exact = model->architecture->forward(batch, nullptr).output;
    const auto error = (narrow - exact).norm().item<double>() / exact.norm().item<double>();
    DOCTEST_CHECK(error < 0.05);
  }
}
