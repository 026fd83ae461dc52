#include "nn/encoder_decoder.h"

#include <algorithm>

#include "nn/option_checks.h"

namespace nn {
namespace {

/// `tensor`'s dimension `dim` filled up with zeros to `size`.
torch::Tensor padded(const torch::Tensor& tensor, std::int64_t dim, std::int64_t size) {
  if (tensor.size(dim) == size) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = size - tensor.size(dim);
  return torch::cat({tensor, torch::zeros(sizes, tensor.options().requires_grad(false))}, dim);
}

/// Rows `rows` of what the State has of `name` become `fresh`; all others keep theirs, and are
/// empty if they have none.
void put_rows(State& state, const std::string& name, const torch::Tensor& rows,
              const torch::Tensor& fresh, std::int64_t dim, std::int64_t all) {
  if (fresh.size(0) == all) {
    state.tensors[name] = fresh;
    return;
  }
  auto sizes = fresh.sizes().vec();
  sizes[0] = all;
  auto old = state.has(name) ? state.tensors[name]
                             : torch::zeros(sizes, fresh.options().requires_grad(false));
  const auto size = std::max(old.size(dim), fresh.size(dim));
  state.tensors[name] =
      padded(old, dim, size).index_copy(0, rows.to(fresh.device()), padded(fresh, dim, size));
}

}  // namespace

DecoderBlock::DecoderBlock(const ShapeOptions& shape, const TransformerOptions& options)
    : pre_norm_(options.norm == "pre"), dropout_(shape.dropout) {
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape.d_model, options.norm_epsilon, options.bias);
  };
  ln_1_ = register_module("ln_1", norm());
  attn_ =
      register_module("attn", std::make_shared<Attention>(shape.d_model, shape.heads, options.bias,
                                                          shape.attention_dropout));
  ln_x_ = register_module("ln_x", norm());
  cross_ = register_module(
      "cross", std::make_shared<CrossAttention>(shape.d_model, shape.heads, options.bias,
                                                shape.attention_dropout));
  ln_2_ = register_module("ln_2", norm());
  mlp_ = register_module("mlp", std::make_shared<FeedForward>(
                                    shape, parse_activation(options.activation), options.bias));
}

torch::Tensor DecoderBlock::forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                                    const std::string& name, const Source& source,
                                    torch::Tensor* ffn_input) {
  const auto drop = [this](const torch::Tensor& y) { return dropped(y, dropout_, is_training()); };
  const auto before = [this](const std::shared_ptr<LayerNorm>& norm, const torch::Tensor& y) {
    return pre_norm_ ? norm->forward(y) : y;
  };
  const auto after = [this](const std::shared_ptr<LayerNorm>& norm, const torch::Tensor& y) {
    return pre_norm_ ? y : norm->forward(y);
  };
  x = after(ln_1_, x + drop(attn_->forward(before(ln_1_, x), sight, cache, name)));
  auto seen = x;
  if (source.entries != nullptr)
    seen =
        x + drop(cross_->forward(before(ln_x_, x), *source.entries, *source.sight, source.present));
  x = after(ln_x_, seen);
  const auto fed = before(ln_2_, x);
  if (ffn_input != nullptr) *ffn_input = fed;
  return after(ln_2_, x + drop(mlp_->forward(fed)));
}

EncoderDecoder::EncoderDecoder(const ModelOptions& options, std::int64_t vocabulary)
    : shape_(options.shape),
      options_(options.transformer),
      positions_(parse_positions(options.transformer.positions)) {
  check_heads(options.shape);
  check_norm(options.transformer);
  check_positions(options.shape, options.transformer);
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  if (positions_ == Positions::learned) {
    const Bands rows{options_.context, shape_.d_model, {}, 1};
    wpe_ = register_module("wpe", std::make_shared<Embedding>(rows));
  }
  encoder_ = register_module("encoder", std::make_shared<SourceEncoder>(options));
  const auto layers = register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i)
    blocks_.push_back(layers->register_module(std::to_string(i),
                                              std::make_shared<DecoderBlock>(shape_, options_)));
  if (options_.final_norm && options_.norm == "pre")
    ln_f_ = register_module(
        "ln_f", std::make_shared<LayerNorm>(shape_.d_model, options_.norm_epsilon, options_.bias));
}

std::vector<SourceEntries> EncoderDecoder::source_entries(const torch::Tensor& source) {
  const auto encoded = encoder_->forward(source, *wte_);
  std::vector<SourceEntries> entries;
  for (const auto& block : blocks_) entries.push_back(block->cross().entries(encoded));
  return entries;
}

void EncoderDecoder::read_source(const Batch& batch, State& sources) {
  if (!batch.source.defined()) return;
  const auto rows = batch.rows();
  auto fresh = torch::arange(rows);
  if (batch.fresh.defined()) fresh = batch.fresh.nonzero().flatten();
  if (fresh.size(0) == 0) return;
  const auto source = fresh.size(0) == rows
                          ? batch.source
                          : batch.source.index_select(0, fresh.to(batch.source.device()));
  if (source.size(1) == 0) return;
  const auto all = source_entries(source);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto& entries = all[i];
    const std::string name = "h." + std::to_string(i) + ".cross.";
    put_rows(sources, name + "k", fresh, entries.keys, 2, rows);
    put_rows(sources, name + "v", fresh, entries.values, 2, rows);
  }
  put_rows(sources, "source", fresh, source >= 0, 1, rows);
}

Hidden EncoderDecoder::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  State alone;  // where nothing is kept every row is fresh
  Batch all = batch;
  if (state == nullptr) all.fresh.reset();
  State& sources = state != nullptr ? *state : alone;
  read_source(all, sources);

  auto x = dropped(embed(batch, cache), shape_.dropout, is_training());
  const auto options = x.options().requires_grad(false);
  const bool drops = is_training() && shape_.attention_dropout > 0;
  const auto sight =
      make_sight(cache, positions_, shape_.heads, shape_.d_model / shape_.heads, options, drops);
  Sight source_sight;
  DecoderBlock::Source source;
  if (sources.has("source")) {
    const auto& real = sources.tensors["source"];
    source_sight = sight_of_real(real, options);
    source.sight = &source_sight;
    source.present = real.any(1).to(options).view({-1, 1, 1});
  }
  torch::Tensor g;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::string name = "h." + std::to_string(i);
    SourceEntries entries;
    if (source.sight != nullptr) {
      entries = {sources.tensors[name + ".cross.k"], sources.tensors[name + ".cross.v"]};
      source.entries = &entries;
    }
    torch::Tensor* const key = i + 1 == blocks_.size() ? &g : nullptr;
    x = blocks_[i]->forward(x, sight, cache, name, source, key);
  }
  if (ln_f_) x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

torch::Tensor EncoderDecoder::embed(const Batch& batch, const KvCache& cache) {
  auto ids = batch.inputs;
  if (!cache.all_valid()) ids = ids.masked_fill(cache.real().logical_not().to(ids.device()), 0);
  auto x = wte_->forward(ids);
  if (wpe_) x = x + wpe_->forward(cache.before().to(ids.device()));
  if (positions_ == Positions::sinusoidal)
    x = x + sinusoids(cache.before(), shape_.d_model).to(x.options().requires_grad(false));
  return x;
}

Carry EncoderDecoder::carry() const {
  const bool absolute = positions_ == Positions::learned || positions_ == Positions::sinusoidal;
  return absolute ? Carry::reencode : Carry::forget;
}

std::optional<std::int64_t> EncoderDecoder::context() const {
  if (positions_ == Positions::learned) return options_.context;
  return std::nullopt;
}

}  // namespace nn
