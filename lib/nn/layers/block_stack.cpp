#include "nn/layers/block_stack.h"

#include "nn/base/upload.h"
#include "nn/ops/gathered_sum.h"
#include "nn/ops/recomputed.h"

namespace nn {

ValuePool::ValuePool(const ProductKeyShape& shape)
    : values(register_parameter("values", blank({shape.keys * shape.keys, shape.d}))) {}

void ValuePool::first_values() {
  values.normal_(0, 1 / std::sqrt(static_cast<double>(values.size(1))));
}

ProductKeyMemory::ProductKeyMemory(const ProductKeyShape& shape, std::shared_ptr<ValuePool> pool)
    : shape_(shape), pool_(std::move(pool)) {
  constexpr double kEpsilon = 1e-6;
  const auto matrix = [&](const char* name, std::int64_t out) {
    return register_module(name, std::make_shared<Linear>(shape.d, out, /*bias=*/false));
  };
  c_q_ = matrix("c_q", shape.heads * shape.d_key);
  norm_q_ = register_module(
      "norm_q", std::make_shared<LayerNorm>(shape.d_key, kEpsilon, /*bias=*/false, NormKind::rms));
  keys_ = register_parameter("keys", blank({shape.heads, 2, shape.keys, shape.d_key / 2}));
  if (pool_ == nullptr) pool_ = register_module("pool", std::make_shared<ValuePool>(shape));
  if (!shape.gated) return;
  c_gate_ = matrix("c_gate", shape.d);
  c_proj_ = matrix("c_proj", shape.d);
}

void ProductKeyMemory::first_values() {
  const auto bound = 1 / std::sqrt(static_cast<double>(keys_.size(-1)));
  keys_.uniform_(-bound, bound);
}

torch::Tensor ProductKeyMemory::forward(const torch::Tensor& x) const {
  const auto heads = shape_.heads, k = shape_.top_k;
  const auto& values = pool_->values;
  const auto q = norm_q_->forward(c_q_->forward(x).reshape({-1, heads, shape_.d_key}))
                     .view({-1, heads, 2, shape_.d_key / 2})
                     .permute({1, 2, 0, 3});                                // (H, 2, T, d_key / 2)
  const auto halves = q.matmul(keys_.to(q.scalar_type()).transpose(2, 3));  // (heads, 2, T, n)
  const auto [score, half] = halves.topk(k, -1);                            // (heads, 2, T, k)
  const auto pairs =
      (score.select(1, 0).unsqueeze(-1) + score.select(1, 1).unsqueeze(-2)).flatten(2);
  const auto [best, pair] = pairs.topk(k, -1);  // (heads, T, k), chosen from (heads, T, k k)
  const auto first = half.select(1, 0).gather(-1, pair.div(k, "floor")),
             second = half.select(1, 1).gather(-1, pair.remainder(k));
  const auto by_token = [&](const torch::Tensor& t) {
    return t.permute({1, 0, 2}).reshape({-1, heads * k});
  };
  const auto weights = torch::softmax(best.to(values.scalar_type()), -1);
  const auto y = gathered_sum(values, by_token(first * shape_.keys + second), by_token(weights))
                     .view(x.sizes());
  return shape_.gated ? c_proj_->forward(y * torch::silu(c_gate_->forward(x))) : y;
}

namespace {

// The keys and values of a block that is computed again: those of earlier calls are kept as they
// were, and no gradient goes to them.
class KeptKeyValues : public KeyValues {
 public:
  /// Called for the first forward pass: new keys and values also go to the cache.
  void first(KeyValues* cache) { cache_ = cache; }
  torch::Tensor extend(const std::string& name, const torch::Tensor& fresh) override {
    if (!keeps_) return fresh;
    if (cache_ != nullptr) {
      const auto all = cache_->extend(name, fresh.detach());
      earlier_[name] = all.narrow(2, 0, all.size(2) - fresh.size(2));
    }
    const auto& earlier = earlier_.at(name);
    return earlier.size(2) == 0 ? fresh : torch::cat({earlier, fresh}, 2);
  }
  bool keeps() const override { return keeps_; }
  explicit KeptKeyValues(bool keeps) : keeps_(keeps) {}

 private:
  bool keeps_;
  KeyValues* cache_ = nullptr;  // null in the second forward pass
  std::map<std::string, torch::Tensor> earlier_;
};

std::shared_ptr<Experts> experts(const ShapeOptions& shape, const TransformerOptions& options) {
  const auto& chosen = options.experts;
  const Inner inner{parse_activation(options.activation), options.feed_forward == "gated",
      shape.activation_dropout};
  return std::make_shared<Experts>(
      ExpertShape{shape.d_model, shape.ffn_width(), chosen.count, chosen.per_token,
          chosen.normalised, options.has_bias("feed-forward")},
      inner);
}

ProductKeyShape product_keys(const ShapeOptions& shape, const MemoryLayerOptions& memory) {
  const auto d_key =
      memory.d_key > 0 ? memory.d_key : 2 * std::max<std::int64_t>(1, shape.d_model / 4);
  return {shape.d_model, memory.heads, memory.keys, memory.top_k, d_key, memory.gate};
}

// Splits a stacked tensor into its parts. unbind's gradient is one stack of all parts' gradients.
std::vector<torch::Tensor> parts_of(const torch::Tensor& stacked, std::int64_t count) {
  if (!stacked.defined()) return std::vector<torch::Tensor>(static_cast<std::size_t>(count));
  return stacked.unflatten(0, {count, -1}).unbind(0);
}

}  // namespace

BlockStack::BlockStack(const ModelOptions& options)
    : shape_(options.shape), options_(options.transformer), memory_(options.memory_layer),
      positions_(parse_positions(options.transformer.positions)) {
  check_heads(shape_, options_);
  check_positions(shape_, options_);
  check_experts(options_.experts);
}

void BlockStack::register_positions(torch::nn::Module& owner) {
  if (positions_ != Positions::learned) return;
  const Bands rows{options_.context, shape_.d_model, {}, 1};
  wpe_ = owner.register_module("wpe", std::make_shared<Embedding>(rows));
}

void BlockStack::register_blocks(torch::nn::Module& owner, bool read_sources) {
  const MemoryNetworks memories(memory_, shape_, owner);
  pool_ = memories.pool();
  const auto list = owner.register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    BlockNetwork instead = memories.of(i);
    if (instead.network == nullptr && options_.experts.any())
      instead = {"experts", experts(shape_, options_)};
    blocks_.push_back(list->register_module(
        std::to_string(i), std::make_shared<Block>(shape_, options_, read_sources, instead)));
    if (has_ngrams()) ngrams_.push_back(nullptr);
    if (has_ngrams() && memory_.has(i, shape_.layers))
      ngrams_.back() = blocks_.back()->register_module(
          "ngram", std::make_shared<NgramMemory>(NgramShape{shape_.d_model, memory_.heads,
                       memory_.rows, memory_.d_ngram > 0 ? memory_.d_ngram : shape_.d_model, i}));
  }
  if (options_.final_norm && options_.norm != "post")
    ln_f_ = owner.register_module(
        "ln_f", std::make_shared<LayerNorm>(shape_.d_model, options_.norm_epsilon,
                    options_.has_bias("norm"), parse_norm_kind(options_.norm_kind)));
}

torch::Tensor BlockStack::add_positions(const torch::Tensor& x, const torch::Tensor& before) const {
  if (wpe_) return x + wpe_->forward(upload(before, x.device()));
  if (positions_ == Positions::sinusoidal)
    return x + upload(sinusoids(before, shape_.d_model), x.options().requires_grad(false));
  return x;
}

std::optional<Rotation> BlockStack::rotation(
    const torch::Tensor& before, std::int64_t window, const torch::TensorOptions& options) const {
  if (positions_ != Positions::rope) return std::nullopt;
  return Rotation(
      before, head_shape(shape_, options_).rotated, rope_of(options_.rope, window), options);
}

std::vector<Visibility> BlockStack::visibilities(
    const KvCache& cache, const torch::TensorOptions& options) const {
  return visibilities_of(cache, cache.before(), options);
}

std::vector<Visibility> BlockStack::visibilities(
    const KvRing& ring, const torch::TensorOptions& options) const {
  return visibilities_of(ring, ring.place().position, options);
}

template <class Cache>
std::vector<Visibility> BlockStack::visibilities_of(
    const Cache& cache, const torch::Tensor& before, const torch::TensorOptions& options) const {
  const auto turned = rotation(before, 0, options);  // not for layers with their own angles
  std::map<std::pair<std::int64_t, bool>, Visibility> of_kind;
  std::vector<Visibility> visibilities;
  auto windows = options_.attention_window;
  if (windows.empty()) windows = {0};
  const auto size = std::ssize(windows), skip = options_.rope.skip;
  const auto period = skip == 0 ? size : std::min(std::lcm(size, skip), shape_.layers);
  for (std::int64_t i = 0; i < period; ++i) {
    const auto window = windows[static_cast<std::size_t>(i % size)];
    const bool turns = turns_layer(options_.rope, i);
    auto [made, fresh] = of_kind.try_emplace({window, turns});
    if (fresh) {
      made->second = make_visibility(cache, positions_, shape_.heads, window, options);
      if (turns)
        made->second.rotation =
            turns_locally(options_.rope, window) ? rotation(before, window, options) : turned;
    }
    visibilities.push_back(made->second);
  }
  return visibilities;
}

std::vector<torch::Tensor> BlockStack::weights_of(std::size_t i) const {
  std::vector<torch::Tensor> weights;
  for (const auto& weight : blocks_[i]->named_parameters()) {
    const bool shared = pool_ && weight.value().is_same(pool_->values);
    if (weight.value().requires_grad() && !shared && !weight.key().starts_with("ngram."))
      weights.push_back(weight.value());
  }
  return weights;
}

std::vector<std::vector<torch::Tensor>> BlockStack::block_weights() const {
  return core::generated(blocks_.size(), [&](std::size_t i) { return weights_of(i); });
}

torch::Tensor BlockStack::recomputed_block(std::size_t i, const torch::Tensor& x,
    const Visibility& visibility, KeyValues& cache, const SourceView& source) const {
  const auto block = blocks_[i];
  std::vector<torch::Tensor> inputs{x};
  const bool reads = source.entries != nullptr;
  if (reads) inputs.insert(inputs.end(), {source.entries->keys, source.entries->values});
  auto weights = weights_of(i);
  const auto own = weights.size();
  if (pool_ && memory_.has(static_cast<std::int64_t>(i), shape_.layers) &&
      pool_->values.requires_grad())
    weights.push_back(pool_->values);
  const auto kept = std::make_shared<KeptKeyValues>(cache.keeps());
  const Visibility of_source = reads ? *source.visibility : Visibility{};
  kept->first(&cache);
  const auto compute = [=, present = source.present](
                           const std::vector<torch::Tensor>& of, bool again) {
    if (again) kept->first(nullptr);
    SourceEntries entries;
    if (reads) entries = {of[1], of[2]};
    return block->forward(of[0], visibility, *kept, name(i),
        reads ? SourceView{&entries, &of_source, present} : SourceView{}, nullptr);
  };
  return recomputed(inputs, weights, compute, lender_, own);
}

torch::Tensor BlockStack::forward(torch::Tensor x, const std::vector<Visibility>& visibilities,
    KeyValues& cache, const std::vector<SourceView>& sources, torch::Tensor* ffn_input,
    NgramCall* ngrams) const {
  for (const auto& memory : ngrams_)
    if (memory != nullptr && ngrams != nullptr) memory->ask_for_rows(*ngrams);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (i < ngrams_.size() && ngrams_[i] != nullptr)
      x = x + dropped(ngrams_[i]->forward(x, *ngrams, name(i) + ".ngram"), shape_.dropout,
                  blocks_[i]->is_training());
    const bool last = i + 1 == blocks_.size();
    const Visibility& visibility = visibilities[i % visibilities.size()];
    const SourceView source = sources.empty() ? SourceView{} : sources[i];
    const bool trains = blocks_[i]->is_training() && torch::GradMode::is_enabled();
    const bool again = (recompute_ || lender_) && !last && trains && visibility.watch == nullptr;
    if (lender_ && last && trains) lender_->lend(weights_of(i));
    x = again ? recomputed_block(i, x, visibility, cache, source)
              : blocks_[i]->forward(
                    x, visibility, cache, name(i), source, last ? ffn_input : nullptr);
  }
  return ln_f_ ? ln_f_->forward(x) : x;
}

std::optional<std::int64_t> BlockStack::context() const {
  if (positions_ == Positions::learned) return options_.context;
  const auto& rope = options_.rope;
  const bool bounded =
      rope.scaling == "dynamic" || rope.scaling == "longrope" || rope.query_growth > 0;
  if (positions_ == Positions::rope && bounded) return rope.trained;
  return std::nullopt;
}

MemoryNetworks::MemoryNetworks(
    const MemoryLayerOptions& options, const ShapeOptions& shape, torch::nn::Module& owner)
    : options_(options), layers_(shape.layers), shape_(product_keys(shape, options)) {
  if (options_.kind == "product-key" && options_.shared)
    pool_ = owner.register_module("memory_pool", std::make_shared<ValuePool>(shape_));
}

BlockNetwork MemoryNetworks::of(std::int64_t i) const {
  if (options_.kind != "product-key" || !options_.has(i, layers_)) return {};
  return {"memory", std::make_shared<ProductKeyMemory>(shape_, pool_)};
}

std::shared_ptr<TokenNetwork> MemoryNetworks::add(
    std::int64_t i, torch::nn::Module& block, std::shared_ptr<TokenNetwork> usual) const {
  auto [name, network] = of(i);
  return block.register_module(name, network != nullptr ? network : std::move(usual));
}

Experts::Experts(const ExpertShape& shape, const Inner& inner) : shape_(shape), inner_(inner) {
  const auto matrix = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  };
  router_ = matrix("router", shape.d, shape.count, false);
  c_fc_ = matrix("c_fc", shape.d, shape.count * inner.wide(shape.width), shape.bias);
  c_proj_ = matrix("c_proj", shape.width, shape.count * shape.d, shape.bias);
}

void Experts::first_values() {
  for (const auto* matrix : {router_.get(), c_fc_.get(), c_proj_.get()}) {
    auto weight = matrix->weight;
    weight.normal_(0, 1 / std::sqrt(static_cast<double>(weight.size(1))));
  }
}

torch::Tensor Experts::forward(const torch::Tensor& x) const {
  const auto k = shape_.per_token;
  const auto rows = x.reshape({-1, shape_.d});  // (T, d)
  const auto scores = router_->forward(rows);   // (T, experts)
  const bool wide = scores.scalar_type() == torch::kFloat64;
  const auto p = torch::softmax(scores, -1, wide ? torch::kFloat64 : torch::kFloat32);
  auto [weight, chosen] = p.topk(k, -1);  // (T, k)
  if (shape_.normalised) weight = weight / weight.sum(-1, /*keepdim=*/true);
  // The T k pairs of a token and an expert, sorted by expert, so that an expert reads its tokens at
  // once.
  const auto pairs = chosen.flatten();
  const auto order = pairs.argsort(/*stable=*/true, /*dim=*/0);
  const auto place = torch::empty_like(order).scatter_(
      0, order, torch::arange(order.size(0), order.options()));  // position of each pair in `order`
  const auto counts = pairs.bincount({}, shape_.count).to(torch::kCPU);
  const auto read = rows.index_select(0, order.div(k, "floor"));  // (T k, d)
  const auto fc = parts_of(c_fc_->weight, shape_.count),
             fc_bias = parts_of(c_fc_->bias, shape_.count),
             proj = parts_of(c_proj_->weight, shape_.count),
             proj_bias = parts_of(c_proj_->bias, shape_.count);
  std::vector<torch::Tensor> given;
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < fc.size(); ++e) {
    const auto n = counts.data_ptr<std::int64_t>()[e];
    if (n == 0) continue;
    const auto inner = torch::linear(read.narrow(0, begin, n), fc[e], fc_bias[e]);
    given.push_back(torch::linear(inner_.of(inner, is_training()), proj[e], proj_bias[e]));
    begin += n;
  }
  if (given.empty()) return x;  // no tokens
  const auto by_token = torch::cat(given).index_select(0, place).view({-1, k, shape_.d});
  const auto y = (by_token * weight.to(by_token.scalar_type()).unsqueeze(-1)).sum(1);
  return y.view(x.sizes());
}

}  // namespace nn
