#include "nn/arch/transformer.h"

#include "nn/base/upload.h"
#include "nn/ops/gathered_sum.h"

namespace nn {

DecoderStack::DecoderStack(const ModelOptions& options, std::int64_t vocabulary) : stack_(options) {
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  stack_.register_positions(*this);
}

Hidden DecoderStack::decode(const Batch& batch, KvCache& cache,
    const std::vector<SourceView>& sources, const AttentionCallback* watch, State* state) {
  auto ids = batch.inputs;
  if (!cache.all_valid())
    ids = ids.masked_fill(upload(cache.real().logical_not(), ids.device()), 0);
  const auto x = embedded(ids, cache.before());
  auto visibilities = stack_.visibilities(cache, x.options().requires_grad(false));
  for (auto& visibility : visibilities) visibility.watch = watch;
  std::optional<NgramCall> ngrams;
  if (stack_.has_ngrams()) ngrams.emplace(batch, state);
  return through_blocks(x, visibilities, cache, sources, ngrams ? &*ngrams : nullptr);
}

Hidden DecoderStack::decode(const torch::Tensor& ids, KvRing& ring, State& /*kept*/) {
  return decode(ids, ring, std::vector<SourceView>{});
}

Hidden DecoderStack::decode(
    const torch::Tensor& ids, KvRing& ring, const std::vector<SourceView>& sources) {
  const auto x = embedded(ids, ring.place().position);
  return through_blocks(x, stack_.visibilities(ring, x.options()), ring, sources,
      /*ngrams=*/nullptr);
}

torch::Tensor DecoderStack::embedded(const torch::Tensor& ids, const torch::Tensor& before) {
  const auto x = stack_.add_positions(wte_->forward(ids), before);
  return dropped(x, stack_.shape().dropout, is_training());
}

Hidden DecoderStack::through_blocks(const torch::Tensor& x,
    const std::vector<Visibility>& visibilities, KeyValues& cache,
    const std::vector<SourceView>& sources, NgramCall* ngrams) {
  const ShapeOptions& shape = stack_.shape();
  torch::Tensor g;
  const auto y = stack_.forward(x, visibilities, cache, sources, &g, ngrams);
  if (shape.memory_key == "output") g = y;
  return {dropped(y, shape.head_dropout, is_training()), g};
}

CarriedState DecoderStack::carried_state(const ModelOptions& options) {
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

Transformer::Transformer(const ModelOptions& options, std::int64_t vocabulary)
    : DecoderStack(options, vocabulary) {
  register_blocks(/*read_sources=*/false);
}

Hidden Transformer::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  RowReads::of_tokens(batch.place.run >= 0);
  return decode(batch, cache, {}, watcher(), state);
}

namespace {

/// Pads dimension `dim` of `tensor` with zeros to `size`.
torch::Tensor padded(const torch::Tensor& tensor, std::int64_t dim, std::int64_t size) {
  if (tensor.size(dim) == size) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = size - tensor.size(dim);
  return torch::cat({tensor, torch::zeros(sizes, tensor.options().requires_grad(false))}, dim);
}

/// Replaces rows `rows` of the State's tensor `name` by `fresh`. Other rows keep their values, or
/// are empty if the State has no such tensor.
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
      padded(old, dim, size).index_copy(0, upload(rows, fresh.device()), padded(fresh, dim, size));
}

}  // namespace

SourceEncoder::SourceEncoder(const ModelOptions& options) : stack_(options) {
  stack_.register_positions(*this);
  stack_.register_blocks(*this, /*read_sources=*/false);
}

Visibility visibility_of_real(const torch::Tensor& real, const torch::TensorOptions& options) {
  Visibility visibility;
  if (real.is_cpu() && real.all().item<bool>()) return visibility;
  visibility.mask = torch::zeros(real.sizes(), options)
                        .masked_fill_(upload(real.logical_not(), options.device()), kHidden)
                        .unsqueeze(1)
                        .unsqueeze(1);
  return visibility;
}

Visibility SourceEncoder::make_visibility(
    const KvCache& cache, const torch::TensorOptions& options) const {
  Visibility visibility = visibility_of_real(cache.real(), options);
  const auto& place = cache.before();
  const ShapeOptions& shape = stack_.shape();
  visibility.rotation = stack_.rotation(place, 0, options);
  if (stack_.positions() == Positions::alibi) {
    const auto distance = (place.unsqueeze(2) - place.unsqueeze(1)).abs().unsqueeze(1);
    const auto bias =
        upload(-alibi_slopes(shape.heads).view({1, shape.heads, 1, 1}) * distance, options);
    visibility.mask = visibility.mask.defined() ? visibility.mask + bias : bias;
  }
  return visibility;
}

torch::Tensor SourceEncoder::forward(
    const torch::Tensor& source, const torch::Tensor& real, Embedding& words) {
  Batch batch;
  batch.inputs = source;
  batch.place.run = real.to(torch::kInt64) - 1;
  KvCache cache(batch, nullptr, stack_.context());
  auto x = stack_.add_positions(words.forward(source.clamp_min(0)), cache.before());
  x = dropped(x, stack_.shape().dropout, is_training());
  const Visibility visibility = make_visibility(cache, x.options().requires_grad(false));
  return stack_.forward(x, {visibility}, cache, {}, nullptr);
}

EncoderDecoder::EncoderDecoder(const ModelOptions& options, std::int64_t vocabulary)
    : DecoderStack(options, vocabulary) {
  encoder_ = register_module("encoder", std::make_shared<SourceEncoder>(options));
  register_blocks(/*read_sources=*/true);
}

std::vector<SourceEntries> EncoderDecoder::source_entries(const torch::Tensor& source) {
  return entries_of(source, source.cpu() >= 0);
}

std::vector<SourceEntries> EncoderDecoder::entries_of(
    const torch::Tensor& source, const torch::Tensor& real) {
  const auto encoded = encoder_->forward(source, real, *wte_);
  return core::mapped(
      stack().blocks(), [&](const auto& block) { return block->cross().entries(encoded); });
}

void EncoderDecoder::read_source(const Batch& batch, State& sources) {
  if (!batch.source.defined()) return;
  const auto rows = batch.rows();
  auto fresh = torch::arange(rows);
  if (batch.fresh.defined()) fresh = batch.fresh.nonzero().flatten();
  if (fresh.size(0) == 0) return;
  if (batch.source.size(1) == 0) return;
  const auto of_fresh = [&](const torch::Tensor& all) {
    return fresh.size(0) == rows ? all : all.index_select(0, upload(fresh, all.device()));
  };
  const auto host = batch.host_source.defined() ? batch.host_source : batch.source.cpu();
  const auto real = of_fresh(host) >= 0;
  const auto all = entries_of(of_fresh(batch.source), real);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& entries = all[i];
    const std::string name = BlockStack::name(i) + ".cross.";
    put_rows(sources, name + "k", fresh, entries.keys, 2, rows);
    put_rows(sources, name + "v", fresh, entries.values, 2, rows);
  }
  put_rows(sources, "source", fresh, real, 1, rows);
}

Hidden EncoderDecoder::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  State alone;  // without a State every row is fresh
  Batch all = batch;
  if (state == nullptr) all.fresh.reset();
  State& sources = state != nullptr ? *state : alone;
  if (sources.has("source")) sources.tensors["source"] = sources.tensors["source"].cpu();
  read_source(all, sources);

  return with_sources(sources, [&](const std::vector<SourceView>& views) {
    return DecoderStack::decode(batch, cache, views, nullptr);
  });
}

template <class Decode>
Hidden EncoderDecoder::with_sources(const State& sources, const Decode& decode) const {
  if (!sources.has("source")) return decode({});
  const auto& real = sources.tensors.at("source");
  const auto options = wte_->tables[0].options().requires_grad(false);
  const Visibility visibility = visibility_of_real(real, options);
  const auto present = upload(real.any(1), options).view({-1, 1, 1});
  std::vector<SourceEntries> entries;
  for (std::size_t i = 0; i < stack().blocks().size(); ++i) {
    const std::string name = BlockStack::name(i) + ".cross.";
    entries.push_back({sources.tensors.at(name + "k"), sources.tensors.at(name + "v")});
  }
  return decode(core::mapped(entries, [&](const auto& of) {
    return SourceView{&of, &visibility, present};
  }));
}

Hidden EncoderDecoder::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  return with_sources(kept,
      [&](const std::vector<SourceView>& views) { return DecoderStack::decode(ids, ring, views); });
}

void EncoderDecoder::read_sources(
    const torch::Tensor& source, const torch::Tensor& fresh, State& kept) {
  const auto device = wte_->tables[0].device();
  Batch batch;
  batch.inputs = batch.host_source = source;
  batch.source = upload(source, device);
  batch.fresh = fresh;
  if (kept.has("source")) kept.tensors["source"] = kept.tensors["source"].cpu();
  read_source(batch, kept);
  if (kept.has("source")) kept.tensors["source"] = upload(kept.tensors["source"], device);
}

}  // namespace nn
