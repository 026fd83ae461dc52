#include "infer/loops/transformer_engine.h"

#include <fmt/ranges.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "infer/decode/chosen_rows.h"
#include "infer/decode/decode_head.h"
#include "infer/decode/packed_weights.h"
#include "infer/loops/activate.h"
#include "infer/loops/paged_attention.h"
#include "nn/arch/decoder_stack.h"
#include "nn/base/arch_facts.h"
#include "nn/layers/embedding.h"

namespace infer {
namespace {

// Checks the sizes of a required parameter.
void expect_sizes(const torch::Tensor& weight, torch::IntArrayRef sizes) {
  if (!weight.defined() || weight.sizes() != sizes)
    core::fail(core::Code::bug, "a block has a weight of shape [{}], expected [{}]",
               fmt::join(weight.defined() ? weight.sizes() : torch::IntArrayRef{}, ", "),
               fmt::join(sizes, ", "));
}

}  // namespace

bool TransformerEngine::fits(const nn::Model& model, torch::Device device,
                             const PackedModel* packed) {
  if (!device.is_cpu() || !has_transformer_loop(model)) return false;
  const bool narrow = !nn::arch_facts(model.options.arch).reads_source;
  for (const auto& [name, weight] : model.named_weights()) {
    const auto type = weight.scalar_type();
    if (type != torch::kFloat32 && !(narrow && type == torch::kBFloat16)) return false;
    if (packed != nullptr && packed->find(weight) != nullptr) continue;
    if (!weight.is_contiguous()) return false;
  }
  return true;
}

TransformerEngine::TransformerEngine(nn::Model& model, Precision precision,
                                     const PackedModel* packed)
    : model_(model), precision_(precision), packed_(packed) {
  const auto& shape = model.options.shape;
  const auto& options = model.options.transformer;
  positions_ = nn::parse_positions(options.positions);
  activation_ = nn::parse_activation(options.activation);
  place_ = nn::parse_norm_placement(options.norm);
  norm_kind_ = nn::parse_norm_kind(options.norm_kind);
  key_is_output_ = shape.memory_key == "output";
  epsilon_ = static_cast<float>(options.norm_epsilon);
  d_ = shape.d_model, inner_ = shape.ffn_width(), heads_ = nn::head_shape(shape, options);
  const auto& stack = dynamic_cast<const nn::DecoderStack&>(*model.architecture).stack();
  for (const auto& block : stack.blocks()) layers_.push_back(layer_of(*block));
  const auto& windows = options.attention_window;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto window = windows.empty() ? 0 : windows[i % windows.size()];
    layers_[i].window = window > 0 ? window : std::numeric_limits<std::int64_t>::max();
    layers_[i].turns = nn::turns_locally(options.rope, window) ? 1 : 0;
    layers_[i].turned = nn::turns_layer(options.rope, static_cast<std::int64_t>(i));
  }
  final_norm_ = norm(stack.final_norm());
  position_table_ = stack.position_table();
  if (position_table_.defined()) position_table_ = position_table_.detach().to(torch::kFloat32);
  if (positions_ == nn::Positions::alibi) {
    const auto slopes = nn::alibi_slopes(heads_.heads);
    for (std::int64_t h = 0; h < heads_.heads; ++h)
      slopes_.push_back(static_cast<float>(slopes[h].item<double>()));
  }
  for (const std::int64_t window : {0, 1}) {
    if (positions_ != nn::Positions::rope ||
        (window > 0 && !nn::turns_locally(options.rope, window)))
      break;
    const auto rope = nn::rope_of(options.rope, window);
    turns_.push_back({nn::rope_frequencies(rope, heads_.rotated), nn::rope_attention_factor(rope)});
  }
  const nn::Scores scores{options.attention_scale, options.attention_softcap};
  scale_ = static_cast<float>(scores.scale_of(heads_.width));
  cap_ = static_cast<float>(options.attention_softcap);
  head_ = decoding_head(model, precision, packed);
  if (packed != nullptr)
    if (const auto* const table = packed->find(model.architecture->embedding()->tables.at(0)))
      embedding_ = *table;
  slots_ = PagedRows(2 * std::ssize(layers_), heads_.d_key());
}

TransformerEngine::Layer TransformerEngine::layer_of(const nn::Block& block) {
  const auto w = block.weights();
  Layer layer;
  layer.norm1 = norm(w.norm1, w.norm1_bias, d_);
  layer.norm2 = norm(w.norm2, w.norm2_bias, d_);
  if (place_ == nn::NormPlacement::sublayer) layer.out1 = layer.norm1, layer.out2 = layer.norm2;
  if (const auto* const out = block.ln_1_out()) layer.out1 = norm(out);
  if (const auto* const out = block.ln_2_out()) layer.out2 = norm(out);
  layer.q_norm = norm(block.attention().q_norm());
  layer.k_norm = norm(block.attention().k_norm());
  layer.qkv = affine(w.qkv, w.qkv_bias, heads_.d_all(), d_);
  layer.project = affine(w.project, w.project_bias, d_, heads_.d_query());
  const auto wide = block.gated() ? 2 * inner_ : inner_;
  layer.expand = affine(w.expand, w.expand_bias, wide, d_, 0, inner_);
  if (block.gated()) layer.factor = affine(w.expand, w.expand_bias, wide, d_, inner_, inner_);
  layer.reduce = affine(w.reduce, w.reduce_bias, d_, inner_);
  if (!block.reads_source()) return layer;
  const auto c = block.cross_weights();
  layer.cross = Cross{norm(c.norm, c.norm_bias, d_), affine(c.query, c.query_bias, d_, d_),
                      affine(c.project, c.project_bias, d_, d_)};
  return layer;
}

Affine TransformerEngine::affine(const torch::Tensor& weight, const torch::Tensor& bias,
                                 std::int64_t out, std::int64_t in, std::int64_t first,
                                 std::int64_t rows) {
  expect_sizes(weight, {out, in});
  const PackedMatrix* const taken = packed_ == nullptr ? nullptr : packed_->find(weight);
  return {taken != nullptr ? taken->rows(first, rows) : pack(weight, first, rows, precision_),
          bias.defined() ? values(bias, out) + first : nullptr, /*halves=*/true};
}

// Returns the weight as float32.
const float* TransformerEngine::values(const torch::Tensor& weight, std::int64_t size) {
  expect_sizes(weight, {size});
  return vectors_.emplace_back(weight.detach().to(torch::kFloat32)).const_data_ptr<float>();
}

LayerNormed TransformerEngine::norm(const torch::Tensor& factors, const torch::Tensor& bias,
                                    std::int64_t d) {
  return {values(factors, d), bias.defined() ? values(bias, d) : nullptr, d, epsilon_,
          norm_kind_ != nn::NormKind::layer};
}

// Returns nothing if the model has no such norm. A norm of heads is as wide as a head.
std::optional<LayerNormed> TransformerEngine::norm(const nn::LayerNorm* of) {
  if (of == nullptr) return std::nullopt;
  return norm(of->factors(), of->bias, of->weight.numel());
}

void TransformerEngine::open(std::int64_t rows) {
  slots_.open(rows);
  sources_.assign(static_cast<std::size_t>(rows), nullptr);
}

void TransformerEngine::select(const std::vector<std::int64_t>& rows) {
  slots_.select(rows);
  sources_ = chosen(sources_, rows);
}

void TransformerEngine::forget(std::int64_t keep) { slots_.forget(keep); }

void TransformerEngine::roll_back(const std::vector<std::int64_t>& tokens) {
  for (std::size_t row = 0; row < slots_.size(); ++row) slots_.roll_back(row, tokens[row]);
}

nn::Hidden TransformerEngine::feed(const std::vector<Feed>& feeds) {
  std::vector<Token> tokens;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].fresh) slots_.clear(row), sources_[row] = nullptr;
    for (const auto id : feeds[row].tokens) tokens.push_back({row, id, 0});
  }
  encode_sources(feeds);
  const auto n = static_cast<std::int64_t>(tokens.size());
  const nn::Hidden hidden{torch::empty({n, d_}), torch::empty({n, d_})};
  const auto step = precision_ == Precision::float32 ? kChunk : kHalfChunk;
  for (std::int64_t begin = 0; begin < n; begin += step) {
    std::vector<Token> chunk(tokens.begin() + begin, tokens.begin() + std::min(n, begin + step));
    for (auto& token : chunk) place(token);
    prepare(chunk);
    run(chunk, hidden.output.data_ptr<float>() + begin * d_,
        hidden.key.data_ptr<float>() + begin * d_);
  }
  return hidden;
}

// Assigns the token its position and a slot that no other row reads.
void TransformerEngine::place(Token& token) {
  token.position = slots_.append(token.row);
  if (position_table_.defined() && token.position >= position_table_.size(0))
    core::fail(core::Code::bad_data, "a row of {} tokens is longer than the {} learned positions",
               token.position + 1, position_table_.size(0));
}

// Returns the embeddings (n, d) as float32.
torch::Tensor TransformerEngine::embedded(const std::vector<std::int64_t>& ids) const {
  auto& embedding = *model_.architecture->embedding();
  if (!embedding_) return embedding.forward_wide(torch::tensor(ids)).contiguous();
  const auto out = torch::empty({std::ssize(ids), d_});
  float* to = out.data_ptr<float>();
  for (const auto id : ids) {
    embedding_->row(id, to);
    to += d_;
  }
  return embedding.scaled(out);
}

// Allocates working memory for these tokens and puts their embeddings into the residual stream.
void TransformerEngine::prepare(const std::vector<Token>& tokens) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int64_t> ids;
  std::int64_t longest = 0;
  for (const auto& token : tokens) {
    ids.push_back(token.id);
    longest = std::max(longest, token.position + 1 - slots_.begin(token.row));
    if (const auto& source = sources_[token.row]) longest = std::max(longest, source->length);
  }
  work_.n = n;
  work_.stride = layers_[0].qkv.matrix.padded_in();
  work_.attended_stride = layers_[0].project.matrix.padded_in();
  work_.inner_stride = layers_[0].reduce.matrix.padded_in();
  const auto at_least = [](std::vector<float>& memory, std::int64_t size) {
    if (memory.size() < static_cast<std::size_t>(size))
      memory.resize(static_cast<std::size_t>(size));
  };
  at_least(work_.x, n * work_.stride);
  at_least(work_.qkv, n * heads_.d_all());
  const auto pairs = turns_.empty() ? 0 : heads_.rotated / 2;
  at_least(work_.turns, std::ssize(turns_) * n * 2 * pairs);
  at_least(work_.attended, n * work_.attended_stride);
  at_least(work_.inner, n * work_.inner_stride);
  if (layers_[0].factor) at_least(work_.factors, n * work_.inner_stride);
  at_least(work_.sums, n * d_);
  work_.own.resize(static_cast<std::size_t>(at::get_num_threads()));
  for (auto& own : work_.own) {
    at_least(own.normed, n * work_.stride);
    at_least(own.scores, longest);
  }
  const auto vectors = embedded(ids);
  const float* const from = vectors.const_data_ptr<float>();
  torch::Tensor waves;
  if (positions_ == nn::Positions::sinusoidal) {
    std::vector<std::int64_t> positions;
    for (const auto& token : tokens) positions.push_back(token.position);
    waves = nn::sinusoids(torch::tensor(positions), d_).to(torch::kFloat32).contiguous();
  }
  float* cos = work_.turns.data();
  for (const auto& turns : turns_)
    for (std::int64_t i = 0; i < n; ++i, cos += 2 * pairs) {
      turns.at(tokens[static_cast<std::size_t>(i)].position, cos);
    }
  for (std::int64_t i = 0; i < n; ++i) {
    float* const x = work_.x.data() + i * work_.stride;
    std::copy_n(from + i * d_, d_, x);
    if (waves.defined()) add(waves.const_data_ptr<float>() + i * d_, d_, x);
    if (position_table_.defined())
      add(position_table_.const_data_ptr<float>() +
              tokens[static_cast<std::size_t>(i)].position * d_,
          d_, x);
  }
}

// Runs tokens through all layers. Returns f and g (n, d).
void TransformerEngine::run(const std::vector<Token>& tokens, float* f, float* g) {
#pragma omp parallel num_threads(at::get_num_threads())
  {
    const TeamShare share{omp_get_thread_num(), omp_get_num_threads()};
    for (std::size_t i = 0; i < layers_.size(); ++i)
      layer(i, tokens, share, i + 1 == layers_.size() && !key_is_output_ ? g : nullptr);
    for (auto i = share.begin(work_.n); i < share.end(work_.n); ++i) {
      const float* const x = work_.x.data() + i * work_.stride;
      if (final_norm_) {
        (*final_norm_)(x, f + i * d_);
      } else {
        std::copy_n(x, d_, f + i * d_);
      }
      if (key_is_output_) std::copy_n(f + i * d_, d_, g + i * d_);
    }
  }
}

// Computes a thread's share of one layer. g, if not null, receives the input of the feed-forward
// network.
void TransformerEngine::layer(std::size_t index, const std::vector<Token>& tokens, TeamShare share,
                              float* g) {
  const Layer& layer = layers_[index];
  const auto n = work_.n, stride = work_.stride, d_all = heads_.d_all();
  const float* const attending = norms_inputs() ? normed(layer.norm1, share) : work_.x.data();
  multiply(layer.qkv, attending, stride, share, work_.qkv.data(), d_all);
#pragma omp barrier
  for (auto i = share.begin(n); i < share.end(n); ++i)
    remember(i, tokens[static_cast<std::size_t>(i)], index);
#pragma omp barrier
  auto& scores = work_.own[static_cast<std::size_t>(share.thread)].scores;
  const auto heads = heads_.heads, width = heads_.width;
  for (auto task = share.begin(n * heads); task < share.end(n * heads); ++task) {
    const auto i = task / heads, head = task % heads;
    attend(tokens[static_cast<std::size_t>(i)], index, head,
           work_.qkv.data() + i * d_all + head * width,
           work_.attended.data() + i * work_.attended_stride + head * width, scores);
  }
#pragma omp barrier
  multiply(layer.project, work_.attended.data(), work_.attended_stride, share, work_.sums.data(),
           d_);
  const float* fed = nullptr;
  if (place_ == nn::NormPlacement::parallel) {
    fed = normed(layer.norm2, share);
#pragma omp barrier
  }
  add_to_stream(share, layer.project, layer.out1);
#pragma omp barrier
  if (place_ == nn::NormPlacement::post) normalise_stream(layer.norm1, share);
  if (layer.cross) read_sources(index, tokens, share);
  if (fed == nullptr) fed = norms_inputs() ? normed(layer.norm2, share) : work_.x.data();
  if (g != nullptr)
    for (auto i = share.begin(n); i < share.end(n); ++i)
      std::copy_n(fed + i * stride, d_, g + i * d_);
  feed_forward(layer, fed, share);
#pragma omp barrier
  multiply(layer.reduce, work_.inner.data(), work_.inner_stride, share, work_.sums.data(), d_);
  add_to_stream(share, layer.reduce, layer.out2);
#pragma omp barrier
  if (place_ == nn::NormPlacement::post) normalise_stream(layer.norm2, share);
}

// Computes the thread's share of the input of the feed-forward network's last matrix.
void TransformerEngine::feed_forward(const Layer& layer, const float* fed, TeamShare share) {
  const auto stride = work_.inner_stride;
  multiply(layer.expand, fed, work_.stride, share, work_.inner.data(), stride);
  if (layer.factor) multiply(*layer.factor, fed, work_.stride, share, work_.factors.data(), stride);
  const auto [first, last] = layer.expand.range(share);
  for (std::int64_t i = 0; i < work_.n; ++i) {
    float* const inner = work_.inner.data() + i * stride + first;
    activate(activation_, inner, last - first);
    if (layer.factor) times(work_.factors.data() + i * stride + first, last - first, inner);
  }
}

// Normalises the whole stream into the thread's own memory, which is faster than waiting for
// shares.
const float* TransformerEngine::normed(const LayerNormed& norm, TeamShare share) {
  auto& out = work_.own[static_cast<std::size_t>(share.thread)].normed;
  for (std::int64_t i = 0; i < work_.n; ++i)
    norm(work_.x.data() + i * work_.stride, out.data() + i * work_.stride);
  return out.data();
}

// Computes the thread's outputs of an affine map with its bias.
void TransformerEngine::multiply(const Affine& map, const float* x, std::int64_t ldx,
                                 TeamShare share, float* y, std::int64_t ldy) const {
  map.multiply(x, work_.n, ldx, share, y, ldy);
}

// Adds the outputs of this thread to the residual stream. If a norm precedes the addition, the
// thread first waits for the outputs of all threads.
void TransformerEngine::add_to_stream(TeamShare share, const Affine& made,
                                      const std::optional<LayerNormed>& out) {
  if (out) {
#pragma omp barrier
    for (auto i = share.begin(work_.n); i < share.end(work_.n); ++i) {
      float* const sums = work_.sums.data() + i * d_;
      (*out)(sums, sums);
      add(sums, d_, work_.x.data() + i * work_.stride);
    }
    return;
  }
  const auto [first, last] = made.range(share);
  for (std::int64_t i = 0; i < work_.n; ++i)
    add(work_.sums.data() + i * d_ + first, last - first,
        work_.x.data() + i * work_.stride + first);
}

void TransformerEngine::normalise_stream(const LayerNormed& norm, TeamShare share) {
  for (auto i = share.begin(work_.n); i < share.end(work_.n); ++i) {
    float* const x = work_.x.data() + i * work_.stride;
    norm(x, x);
  }
#pragma omp barrier
}

// Normalises and rotates the token's queries and keys if the model does, and stores keys and values
// in their slot.
void TransformerEngine::remember(std::int64_t index, const Token& token, std::size_t layer) {
  float* const q = work_.qkv.data() + index * heads_.d_all();
  float* const k = q + heads_.d_query();
  const auto normalise_heads = [&](const std::optional<LayerNormed>& norm, float* x,
                                   std::int64_t d) {
    if (!norm) return;
    for (float* part = x; part < x + d; part += norm->width) (*norm)(part, part);
  };
  normalise_heads(layers_[layer].q_norm, q, heads_.d_query());
  normalise_heads(layers_[layer].k_norm, k, heads_.d_key());
  const auto pairs = turns_.empty() ? 0 : heads_.rotated / 2;
  const auto which = static_cast<std::int64_t>(layers_[layer].turns) * work_.n + index;
  const float* const cos = work_.turns.data() + which * 2 * pairs;
  const float* const sin = cos + pairs;
  const bool turns = pairs > 0 && layers_[layer].turned;
  for (float* x = q; turns && x < k + heads_.d_key(); x += heads_.width)
    turn_pairs(cos, sin, pairs, x);
  std::copy_n(k, heads_.d_key(), slot(token.row, token.position, layer, 0));
  std::copy_n(k + heads_.d_key(), heads_.d_key(), slot(token.row, token.position, layer, 1));
}

// softmax(q k^T / sqrt(width)) v over the positions in the row and the layer's window, up to the
// token's own position.
void TransformerEngine::attend(const Token& token, std::size_t layer, std::int64_t head,
                               const float* q, float* out, std::vector<float>& scores) const {
  const auto window = layers_[layer].window;
  const auto oldest =
      std::max(slots_.begin(token.row), window > token.position ? 0 : token.position + 1 - window);
  const Seen seen{token.row,          oldest,
                  token.position + 1, head / (heads_.heads / heads_.kv_heads) * heads_.width,
                  heads_.width,       static_cast<std::int64_t>(2 * layer)};
  const auto held = seen.end - seen.begin;
  paged_scores(slots_, seen, q, scale_, scores.data());
  if (cap_ > 0) soft_cap(scores.data(), held, cap_);
  if (!slopes_.empty())
    for (std::int64_t i = 0; i < held; ++i)
      scores[static_cast<std::size_t>(i)] -=
          slopes_[static_cast<std::size_t>(head)] * static_cast<float>(token.position - oldest - i);
  paged_values(slots_, seen, scores.data(), out);
}

}  // namespace infer
