#include "nn/arch/transformer_xl.h"

#include "nn/base/upload.h"
#include "nn/layers/block_stack.h"

namespace nn {
XlBlock::XlBlock(const ShapeOptions& shape, const TransformerOptions& options, bool own_biases,
    const BlockNetwork& instead)
    : pre_norm_(options.norm == "pre"), dropout_(shape.dropout) {
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape.d_model, options.norm_epsilon, options.bias);
  };
  ln_1_ = register_module("ln_1", norm());
  attn_ = register_module("attn",
      std::make_shared<RelativeAttention>(shape.d_model, shape.heads, shape.attention_dropout));
  if (own_biases)
    biases_ = register_module(
        "biases", std::make_shared<PositionBiases>(shape.heads, shape.d_model / shape.heads));
  ln_2_ = register_module("ln_2", norm());
  mlp_ = instead.network;
  if (mlp_ == nullptr)
    mlp_ = std::make_shared<FeedForward>(shape, parse_activation(options.activation), options.bias);
  register_module(instead.name, mlp_);
}

torch::Tensor XlBlock::read(const torch::Tensor& x) const {
  return pre_norm_ ? ln_1_->forward(x) : x;
}

torch::Tensor XlBlock::forward(torch::Tensor x, const torch::Tensor& read,
    const torch::Tensor& keys_values, const torch::Tensor& positions, const PositionBiases* shared,
    const KeyVisibility& visibility, torch::Tensor* ffn_input) {
  const auto drop = [&](const torch::Tensor& y) { return dropped(y, dropout_, is_training()); };
  x = x +
      drop(attn_->forward(read, keys_values, positions, biases_ ? *biases_ : *shared, visibility));
  if (!pre_norm_) x = ln_1_->forward(x);
  const auto fed = pre_norm_ ? ln_2_->forward(x) : x;
  if (ffn_input != nullptr) *ffn_input = fed;
  x = x + drop(mlp_->forward(fed));
  return pre_norm_ ? x : ln_2_->forward(x);
}

TransformerXl::TransformerXl(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary),
      lengths_(parse_layer_memory(options.layer_memory.layer_memory, options.shape.layers)),
      same_length_(parse_same_length(options.layer_memory.same_length)),
      clamp_(options.transformer_xl.clamp_length) {
  check_heads(shape_);
  const bool shared = options.transformer_xl.shared_biases;
  if (shared)
    biases_ = register_module(
        "biases", std::make_shared<PositionBiases>(shape_.heads, shape_.d_model / shape_.heads));
  const MemoryNetworks memories(options.memory_layer, shape_, *this);
  const auto layers = register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i)
    blocks_.push_back(layers->register_module(std::to_string(i),
        std::make_shared<XlBlock>(shape_, options.transformer, !shared, memories.of(i))));
  if (options.transformer.final_norm && options.transformer.norm == "pre")
    ln_f_ =
        register_module("ln_f", std::make_shared<LayerNorm>(shape_.d_model,
                                    options.transformer.norm_epsilon, options.transformer.bias));
}

Hidden TransformerXl::forward(const Batch& batch, State* state) {
  LayerMemory memory(batch, state);
  const auto made = run(memory.packed_ids(batch), memory);
  return {memory.unpack(made.output), memory.unpack(made.key)};
}

Hidden TransformerXl::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  FixedLayerPast past(ring.place(), kept);
  return run(ids, past);
}

Hidden TransformerXl::run(const torch::Tensor& ids, LayerPast& memory) {
  auto x = dropped(wte_->forward(ids), shape_.dropout, is_training());
  const auto options = x.options().requires_grad(false);
  const auto steps = x.size(1);
  const bool keep_keys = !is_training() && !torch::GradMode::is_enabled();

  const auto name = [](std::size_t layer) { return "h." + std::to_string(layer); };
  torch::Tensor far;  // for the longest memory; other layers use its last rows
  if (!keep_keys) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      most = std::max(most, memory.remembered(name(i), lengths_[i]));
    far = dropped(distances(most + steps, options), shape_.dropout, is_training());
  }
  torch::Tensor g;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    auto& block = *blocks_[i];
    torch::Tensor read, keys_values;
    if (keep_keys) {
      read = block.read(x);
      keys_values = memory.extend(name(i), block.keys_values(read), lengths_[i]);
    } else {
      const auto all = block.read(memory.extend(name(i), x, lengths_[i]));
      read = all.narrow(1, all.size(1) - steps, steps);
      keys_values = block.keys_values(all);
    }
    const auto slots = keys_values.size(1);
    const auto positions = keep_keys ? kept_positions(i, slots, options)
                                     : block.positions(far.narrow(0, far.size(0) - slots, slots));
    const KeyVisibility visibility{
        memory.first_valid(slots - steps), same_length_ ? lengths_[i] : -1};
    torch::Tensor* const key = i + 1 == blocks_.size() ? &g : nullptr;
    x = block.forward(x, read, keys_values, positions, biases_.get(), visibility, key);
  }
  if (ln_f_) x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

torch::Tensor TransformerXl::distances(std::int64_t slots, const torch::TensorOptions& options) {
  const bool other = !table_.defined() || table_.scalar_type() != options.dtype() ||
                     table_.device() != options.device();
  if (other) positions_.assign(blocks_.size(), {});
  if (other || table_.size(0) < slots) {
    // Rounds the size up to a power of two, since text may arrive token by token.
    const auto room = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(slots)));
    table_ = upload(distance_vectors(room, clamp_, shape_.d_model), options);
  }
  return table_.narrow(0, table_.size(0) - slots, slots);
}

torch::Tensor TransformerXl::kept_positions(
    std::size_t layer, std::int64_t slots, const torch::TensorOptions& options) {
  const auto room = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(slots)));
  const auto table = distances(room, options);
  auto& kept = positions_[layer][room];
  if (!kept.defined()) kept = blocks_[layer]->positions(table);
  return kept.narrow(0, kept.size(0) - slots, slots);
}

void TransformerXl::train(bool on) {
  Architecture::train(on);
  table_ = torch::Tensor();  // the cached positions too: weights may change before the next use
}

void TransformerXl::set_reach(const LayerReach& reach) {
  if (!reach.layer_memory.empty()) lengths_ = parse_layer_memory(reach.layer_memory, shape_.layers);
  if (!reach.same_length.empty()) same_length_ = parse_same_length(reach.same_length);
  if (reach.clamp_length >= 0) clamp_ = reach.clamp_length;
  table_ = torch::Tensor();
}

CarriedState TransformerXl::carried_state(const ModelOptions& options) {
  CarriedState state;
  for (const auto length :
      parse_layer_memory(options.layer_memory.layer_memory, options.shape.layers))
    state.fixed += length * options.shape.d_model;
  return state;
}

}  // namespace nn
