// The carried state that follows from the options equals the contents of the State.

#include <doctest/doctest.h>

#include "nn/arch/model.h"
#include "properties.h"

namespace {

using Change = std::function<void(nn::ModelOptions&)>;

nn::ModelOptions tiny(const std::string& arch) {
  nn::ModelOptions options;
  options.arch = arch;
  options.shape.layers = 3, options.shape.d_model = 12, options.shape.heads = 2;
  options.shape.dropout = 0;
  options.layer_memory.layer_memory = "4,0,7", options.srupp.d_projection = 6;
  return options;
}

// Returns the numbers in the State of one row, counting only used slots of buffers, and the number
// of these slots.
std::pair<std::int64_t, std::int64_t> held(const nn::State& state) {
  std::int64_t numbers = 0, slots = 0;
  const bool cached = state.counts.contains("end");
  if (cached) slots = state.counts.at("end") - state.counts.at("begin");
  for (const auto& [name, tensor] : state.tensors) {
    if (!tensor.is_floating_point()) continue;
    if (name.ends_with(".read")) slots = tensor.size(1);  // of gated attention
    numbers +=
        cached && tensor.dim() == 4 ? tensor.numel() / tensor.size(2) * slots : tensor.numel();
  }
  return {numbers, slots};
}

}  // namespace

DOCTEST_TEST_CASE("a stream's State has as many numbers as the options say") {
  const std::vector<std::pair<std::string, Change>> variants = {
      {"transformer", [](auto&) {}},
      {"transformer",
          [](auto& o) { o.transformer.kv_heads = 1, o.transformer.positions = "rope"; }},
      {"transformer", [](auto& o) { o.memory_layer.kind = "product-key"; }},
      {"transformer",
          [](auto& o) {
            o.memory_layer.kind = "ngram", o.memory_layer.layers = {1, 3};
          }},
      {"transformer-xl", [](auto&) {}},
      {"srupp", [](auto&) {}},
      {"srupp", [](auto& o) { o.srupp.attention_last = 1; }},
      {"srupp", [](auto& o) { o.srupp.attention_every = 2; }},
      {"srupp", [](auto& o) { o.srupp.attention_every = 0; }},
      {"lstm", [](auto&) {}},
      {"lstm", [](auto& o) { o.lstm.d_recurrent = 5; }},
      {"lstm",
          [](auto& o) {
            o.state_memory = {"segments", 4, 3, 2}, o.lstm.d_recurrent = 5;
          }},
      {"lstm",
          [](auto& o) {
            o.state_memory = {"fenwick", 1, 1, 9};
          }},
      {"gla",
          [](auto& o) {
            o.state_memory = {"segments", 4, 3, 2};
          }},
      {"gla",
          [](auto& o) {
            o.state_memory = {"fenwick", 1, 1, 9}, o.gla.update = "delta";
          }},
      {"hybrid",
          [](auto& o) {
            o.mixers.list = "delta,gla,window", o.state_memory = {"segments", 20, 2, 2};
          }},
      {"gla", [](auto&) {}},
      {"gla", [](auto& o) { o.gla.decay = "none"; }},
      {"gla", [](auto& o) { o.gla.update = "delta"; }},
      {"gla", [](auto& o) { o.gla.update = "delta", o.gla.convolution = 1; }},
      {"mamba2", [](auto&) {}},
      {"mamba2", [](auto& o) { o.gla.convolution = 1, o.mamba2.expand = 3; }},
      {"rwkv7", [](auto&) {}},
      {"mamba", [](auto& o) { o.mixers.state = 5; }},
      {"kda", [](auto&) {}},
      {"kda", [](auto& o) { o.gla.convolution = 1; }},
      {"window", [](auto& o) { o.mixers.window = 9; }},
      {"hybrid", [](auto& o) { o.mixers.list = "mamba2,window,linear"; }},
      {"hybrid",
          [](auto& o) {
            o.mixers.list = "delta,gated-attention", o.gla.d_key = 3, o.gla.value_heads = 6,
            o.gla.key_heads = 2;
          }},
      {"rwkv4", [](auto&) {}},
      {"s4d", [](auto& o) { o.mixers.state = 6; }},
      {"h3", [](auto&) {}},
      {"h3", [](auto& o) { o.gla.convolution = 1, o.mixers.state = 2; }},
      {"hyena", [](auto& o) { o.mixers.filter = 9; }},
      {"hyena", [](auto& o) { o.mixers.filter = 1, o.gla.convolution = 1; }},
      {"mosaic", [](auto&) {}},
      {"mosaic2", [](auto&) {}},
  };
  for (const auto& [arch, change] : variants) {
    auto options = tiny(arch);
    change(options);
    DOCTEST_CAPTURE(arch);
    torch::manual_seed(1);
    nn::Model model(options, properties::kVocabulary);
    nn::State state;
    properties::Ids ids;
    for (std::int64_t i = 0; i < 11; ++i) ids.push_back(i % properties::kVocabulary);
    model.architecture->forward(properties::batch_of({ids}), &state);
    const auto [numbers, slots] = held(state);
    const auto told = nn::carried_state(options);
    DOCTEST_CHECK(numbers == told.fixed + told.per_token * slots);
    DOCTEST_CHECK((told.per_token > 0) == (slots > 0));
    DOCTEST_CHECK(told.bytes(slots) == 4 * numbers);
  }
}

DOCTEST_TEST_CASE("Transformer-XL's states are those of Rae and Razavi 2020") {
  auto options = tiny("transformer-xl");
  const auto mebibytes = [&](std::int64_t layers, const char* memory) {
    options.shape.layers = layers, options.shape.d_model = 1024;
    options.layer_memory.layer_memory = memory;
    return static_cast<double>(nn::carried_state(options).bytes(0)) / (1 << 20);
  };
  // WikiText-103: 18 layers of 1,600; enwik8: 24 of 3,800. "112MB" and "356MB" (section 1).
  DOCTEST_CHECK(mebibytes(18, "1600") == 112.5);
  DOCTEST_CHECK(mebibytes(24, "3800") == doctest::Approx(356.25));
  // All of 6,000, and four of them with the others of 128 (section 3).
  DOCTEST_CHECK(mebibytes(24, "6000") == 562.5);
  DOCTEST_CHECK(mebibytes(24, "long=6000 short=128 place=interleaved:4") == 103.75);
}
