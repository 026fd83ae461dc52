#include "nn/arch/carried_state.h"

#include "nn/base/arch_facts.h"
#include "nn/layers/layer_memory_lengths.h"
#include "nn/layers/ngram_memory.h"

namespace nn {
namespace {

CarriedState of_attention(const ModelOptions& options) {
  CarriedState state;
  state.per_token =
      2 * options.shape.layers * head_shape(options.shape, options.transformer).d_key();
  for (std::int64_t layer = 0; options.memory_layer.kind == "ngram" && layer < options.shape.layers;
       ++layer)
    if (options.memory_layer.has(layer, options.shape.layers))
      state.fixed += kNgramPast * options.shape.d_model;
  if (options.transformer.positions == "learned") state.most_tokens = options.transformer.context;
  return state;
}

// Whether a layer has a memory; of srupp those that attend.
bool remembers(const ModelOptions& options, std::int64_t layer) {
  if (options.arch != "srupp") return true;
  const auto above = options.shape.layers - 1 - layer;
  if (options.srupp.attention_last > 0) return above < options.srupp.attention_last;
  return options.srupp.attention_every > 0 && above % options.srupp.attention_every == 0;
}

CarriedState of_layer_memories(const ModelOptions& options) {
  const auto lengths = parse_layer_memory(options.layer_memory.layer_memory, options.shape.layers);
  CarriedState state;
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer)
    if (remembers(options, layer))
      state.fixed += lengths[static_cast<std::size_t>(layer)] * options.shape.d_model;
  if (options.arch == "srupp")
    state.fixed += options.shape.layers * options.shape.d_model;  // cells
  return state;
}

// A matrix a head: half the width by all of it.
CarriedState of_gla(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model;
  std::int64_t a_layer = d / 2 * (d / options.shape.heads);
  if (options.gla.update == "delta") a_layer += (options.gla.convolution - 1) * 2 * d;
  return {options.shape.layers * a_layer};
}

// Keys and values of each contextual memory; its leaky sums and pending value, and the sums of the
// persistent memory.
CarriedState of_mosaic(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model, layers = options.shape.layers;
  if (options.arch == "mosaic") return {layers * 3 * d, layers * 2 * d};
  return {layers * 2 * (2 * d + options.shape.heads), layers * 2 * 2 * d};
}

}  // namespace

CarriedState carried_state(const ModelOptions& options) {
  if (arch_facts(options.arch).layer_memory) return of_layer_memories(options);
  if (options.arch == "gla") return of_gla(options);
  if (options.arch == "mosaic" || options.arch == "mosaic2") return of_mosaic(options);
  if (options.arch == "lstm") {
    const auto width =
        options.lstm.d_recurrent > 0 ? options.lstm.d_recurrent : options.shape.d_model;
    return {2 * options.shape.layers * width};
  }
  return of_attention(options);
}

}  // namespace nn
