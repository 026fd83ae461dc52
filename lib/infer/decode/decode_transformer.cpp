#include "infer/decode/decode_transformer.h"

#include <fmt/ranges.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "infer/decode/decode_head.h"
#include "nn/arch/decoder_stack.h"

namespace infer {
namespace {

// Of a parameter that must be there, in this shape.
const float* values(const torch::Tensor& weight, torch::IntArrayRef sizes) {
  if (!weight.defined() || weight.sizes() != sizes)
    core::fail(core::Code::bug, "a block has a weight of [{}] where one of [{}] belongs",
               fmt::join(weight.defined() ? weight.sizes() : torch::IntArrayRef{}, ", "),
               fmt::join(sizes, ", "));
  return weight.const_data_ptr<float>();
}

// Null: a map without bias.
const float* bias_values(const torch::Tensor& bias, std::int64_t size) {
  return bias.defined() ? values(bias, {size}) : nullptr;
}

}  // namespace

bool TransformerEngine::fits(const nn::Model& model, torch::Device device) {
  if (dynamic_cast<const nn::DecoderStack*>(model.architecture.get()) == nullptr ||
      !device.is_cpu())
    return false;
  for (const auto& [name, weight] : model.named_weights())
    if (weight.scalar_type() != torch::kFloat32 || !weight.is_contiguous()) return false;
  return true;
}

TransformerEngine::TransformerEngine(nn::Model& model, Precision precision)
    : model_(model), precision_(precision) {
  const auto& shape = model.options.shape;
  const auto& options = model.options.transformer;
  positions_ = nn::parse_positions(options.positions);
  activation_ = nn::parse_activation(options.activation);
  pre_norm_ = options.norm == "pre";
  key_is_output_ = shape.memory_key == "output";
  epsilon_ = static_cast<float>(options.norm_epsilon);
  d_ = shape.d_model, heads_ = shape.heads, width_ = d_ / heads_, inner_ = shape.ffn_width();
  const auto& stack = dynamic_cast<const nn::DecoderStack&>(*model.architecture).stack();
  for (const auto& block : stack.blocks()) layers_.push_back(pack(*block));
  if (const auto* const last = stack.final_norm()) final_norm_ = norm(last->weight, last->bias);
  position_table_ = stack.position_table();
  if (position_table_.defined()) position_table_ = position_table_.detach();
  if (positions_ == nn::Positions::alibi) {
    const auto slopes = nn::alibi_slopes(heads_);
    for (std::int64_t h = 0; h < heads_; ++h)
      slopes_.push_back(static_cast<float>(slopes[h].item<double>()));
  }
  if (positions_ == nn::Positions::rope)
    for (std::int64_t i = 0; i < width_ / 2; ++i)
      frequency_.push_back(
          std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(width_)));
  const bool plain = model.options.vocabulary.cutoffs.empty();
  head_ = plain ? std::make_shared<PackedHead>(model.head, precision) : model.head;
}

TransformerEngine::Layer TransformerEngine::pack(const nn::Block& block) const {
  const auto w = block.weights();
  Layer layer;
  layer.norm1 = norm(w.norm1, w.norm1_bias);
  layer.norm2 = norm(w.norm2, w.norm2_bias);
  layer.qkv = affine(w.qkv, w.qkv_bias, 3 * d_, d_);
  layer.project = affine(w.project, w.project_bias, d_, d_);
  layer.expand = affine(w.expand, w.expand_bias, inner_, d_);
  layer.reduce = affine(w.reduce, w.reduce_bias, d_, inner_);
  if (!block.reads_source()) return layer;
  const auto c = block.cross_weights();
  layer.cross = Cross{norm(c.norm, c.norm_bias), affine(c.query, c.query_bias, d_, d_),
                      affine(c.project, c.project_bias, d_, d_)};
  return layer;
}

TransformerEngine::Affine TransformerEngine::affine(const torch::Tensor& weight,
                                                    const torch::Tensor& bias, std::int64_t out,
                                                    std::int64_t in) const {
  return {PackedMatrix(values(weight, {out, in}), out, in, precision_), bias_values(bias, out)};
}

TransformerEngine::Norm TransformerEngine::norm(const torch::Tensor& weight,
                                                const torch::Tensor& bias) const {
  return {values(weight, {d_}), bias_values(bias, d_)};
}

void TransformerEngine::open(std::int64_t rows) {
  rows_.assign(static_cast<std::size_t>(rows), {});
}

void TransformerEngine::select(const std::vector<std::int64_t>& rows) {
  std::vector<Row> chosen;
  for (const auto row : rows) chosen.push_back(rows_[static_cast<std::size_t>(row)]);
  rows_ = std::move(chosen);
}

void TransformerEngine::forget(std::int64_t keep) {
  for (auto& row : rows_) {
    row.begin = std::max(row.begin, row.end - keep);
    const auto gone = static_cast<std::size_t>(row.begin / kPageTokens);
    for (std::size_t i = std::min(gone, row.pages.size()); i > 0 && row.pages[i - 1]; --i)
      row.pages[i - 1].reset();
  }
}

nn::Hidden TransformerEngine::feed(const std::vector<Feed>& feeds) {
  std::vector<Token> tokens;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].fresh) rows_[row] = {};
    for (const auto id : feeds[row].tokens) tokens.push_back({row, id, 0});
  }
  encode_sources(feeds);
  const auto n = static_cast<std::int64_t>(tokens.size());
  const nn::Hidden hidden{torch::empty({n, d_}), torch::empty({n, d_})};
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    std::vector<Token> chunk(tokens.begin() + begin, tokens.begin() + std::min(n, begin + kChunk));
    for (auto& token : chunk) place(token);
    prepare(chunk);
    run(chunk, hidden.f.data_ptr<float>() + begin * d_, hidden.g.data_ptr<float>() + begin * d_);
  }
  return hidden;
}

// Gives the token its position and a slot that no other row reads.
void TransformerEngine::place(Token& token) {
  Row& row = rows_[token.row];
  token.position = row.end++;
  if (position_table_.defined() && token.position >= position_table_.size(0))
    core::fail(core::Code::bad_data, "a row of {} tokens is longer than the {} positions learned",
               row.end, position_table_.size(0));
  const auto page_size = layers_.size() * 2 * static_cast<std::size_t>(kPageTokens * d_);
  const auto used = token.position % kPageTokens;
  if (used == 0) {
    row.pages.push_back(std::make_shared<Page>(page_size));
    return;
  }
  auto& page = row.pages.back();
  if (page.use_count() == 1) return;
  const auto own = std::make_shared<Page>(page_size);
  for (std::size_t part = 0; part < layers_.size() * 2; ++part) {
    const auto from = static_cast<std::ptrdiff_t>(part) * kPageTokens * d_;
    std::copy_n(page->begin() + from, used * d_, own->begin() + from);
  }
  page = own;
}

// Working memory for these tokens, and their embeddings in the residual stream.
void TransformerEngine::prepare(const std::vector<Token>& tokens) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int64_t> ids;
  std::int64_t longest = 0;
  for (const auto& token : tokens) {
    ids.push_back(token.id);
    const auto& row = rows_[token.row];
    longest = std::max(longest, token.position + 1 - row.begin);
    if (row.source) longest = std::max(longest, row.source->length);
  }
  work_.n = n;
  work_.stride = layers_[0].qkv.matrix.padded_in();
  work_.inner_stride = layers_[0].reduce.matrix.padded_in();
  const auto at_least = [](std::vector<float>& memory, std::int64_t size) {
    if (memory.size() < static_cast<std::size_t>(size))
      memory.resize(static_cast<std::size_t>(size));
  };
  at_least(work_.x, n * work_.stride);
  at_least(work_.qkv, n * 3 * d_);
  at_least(work_.attended, n * work_.stride);
  at_least(work_.inner, n * work_.inner_stride);
  at_least(work_.sums, n * d_);
  work_.own.resize(static_cast<std::size_t>(at::get_num_threads()));
  for (auto& own : work_.own) {
    at_least(own.normed, n * work_.stride);
    at_least(own.scores, longest);
  }
  const auto embedded = model_.architecture->embedding()->forward(torch::tensor(ids)).contiguous();
  const float* const from = embedded.const_data_ptr<float>();
  torch::Tensor waves;
  if (positions_ == nn::Positions::sinusoidal) {
    std::vector<std::int64_t> positions;
    for (const auto& token : tokens) positions.push_back(token.position);
    waves = nn::sinusoids(torch::tensor(positions), d_).to(torch::kFloat32).contiguous();
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

// Tokens through all layers: f and g (n, d).
void TransformerEngine::run(const std::vector<Token>& tokens, float* f, float* g) {
#pragma omp parallel num_threads(at::get_num_threads())
  {
    const Share share{omp_get_thread_num(), omp_get_num_threads()};
    for (std::size_t i = 0; i < layers_.size(); ++i)
      layer(i, tokens, share, i + 1 == layers_.size() && !key_is_output_ ? g : nullptr);
    for (auto i = share.begin(work_.n); i < share.end(work_.n); ++i) {
      const float* const x = work_.x.data() + i * work_.stride;
      if (final_norm_.weight != nullptr) {
        layer_norm(x, final_norm_.weight, final_norm_.bias, d_, epsilon_, f + i * d_);
      } else {
        std::copy_n(x, d_, f + i * d_);
      }
      if (key_is_output_) std::copy_n(f + i * d_, d_, g + i * d_);
    }
  }
}

// One layer, a thread's share. g, if not null, receives what the feed-forward network reads.
void TransformerEngine::layer(std::size_t index, const std::vector<Token>& tokens, Share share,
                              float* g) {
  const Layer& layer = layers_[index];
  const auto n = work_.n, stride = work_.stride;
  const float* const attending = pre_norm_ ? normed(layer.norm1, share) : work_.x.data();
  multiply(layer.qkv, attending, stride, share, work_.qkv.data(), 3 * d_);
#pragma omp barrier
  for (auto i = share.begin(n); i < share.end(n); ++i)
    remember(tokens[static_cast<std::size_t>(i)], index, work_.qkv.data() + i * 3 * d_);
#pragma omp barrier
  auto& scores = work_.own[static_cast<std::size_t>(share.thread)].scores;
  for (auto task = share.begin(n * heads_); task < share.end(n * heads_); ++task) {
    const auto i = task / heads_, head = task % heads_;
    attend(tokens[static_cast<std::size_t>(i)], index, head,
           work_.qkv.data() + i * 3 * d_ + head * width_,
           work_.attended.data() + i * stride + head * width_, scores);
  }
#pragma omp barrier
  multiply(layer.project, work_.attended.data(), stride, share, work_.sums.data(), d_);
  add_to_stream(share, layer.project.matrix);
#pragma omp barrier
  if (!pre_norm_) normalise_stream(layer.norm1, share);
  if (layer.cross) read_sources(index, tokens, share);
  const float* const fed = pre_norm_ ? normed(layer.norm2, share) : work_.x.data();
  if (g != nullptr)
    for (auto i = share.begin(n); i < share.end(n); ++i)
      std::copy_n(fed + i * stride, d_, g + i * d_);
  multiply(layer.expand, fed, stride, share, work_.inner.data(), work_.inner_stride);
  const auto panels = layer.expand.matrix.panels();
  const auto first = PackedMatrix::kPanel * share.begin(panels);
  const auto last = std::min(inner_, PackedMatrix::kPanel * share.end(panels));
  for (std::int64_t i = 0; i < n; ++i) {
    float* const inner = work_.inner.data() + i * work_.inner_stride + first;
    switch (activation_) {
      case nn::Activation::gelu:
        gelu(inner, last - first);
        break;
      case nn::Activation::gelu_exact:
        gelu_exact(inner, last - first);
        break;
      case nn::Activation::relu:
        relu(inner, last - first);
        break;
    }
  }
#pragma omp barrier
  multiply(layer.reduce, work_.inner.data(), work_.inner_stride, share, work_.sums.data(), d_);
  add_to_stream(share, layer.reduce.matrix);
#pragma omp barrier
  if (!pre_norm_) normalise_stream(layer.norm2, share);
}

// The whole stream normalised, in the thread's own memory: less work than to wait for a share.
const float* TransformerEngine::normed(const Norm& norm, Share share) {
  auto& out = work_.own[static_cast<std::size_t>(share.thread)].normed;
  for (std::int64_t i = 0; i < work_.n; ++i)
    layer_norm(work_.x.data() + i * work_.stride, norm.weight, norm.bias, d_, epsilon_,
               out.data() + i * work_.stride);
  return out.data();
}

// The thread's outputs of an affine map, bias included.
void TransformerEngine::multiply(const Affine& map, const float* x, std::int64_t ldx, Share share,
                                 float* y, std::int64_t ldy) const {
  const auto panels = map.matrix.panels();
  const auto begin = share.begin(panels), end = share.end(panels);
  map.matrix.multiply(x, work_.n, ldx, begin, end, y, ldy);
  if (map.bias == nullptr) return;
  const auto first = PackedMatrix::kPanel * begin;
  const auto last = std::min(map.matrix.out(), PackedMatrix::kPanel * end);
  for (std::int64_t i = 0; i < work_.n; ++i)
    add(map.bias + first, last - first, y + i * ldy + first);
}

// The outputs that this thread has `made` go into the residual stream.
void TransformerEngine::add_to_stream(Share share, const PackedMatrix& made) {
  const auto first = PackedMatrix::kPanel * share.begin(made.panels());
  const auto last = std::min(d_, PackedMatrix::kPanel * share.end(made.panels()));
  for (std::int64_t i = 0; i < work_.n; ++i)
    add(work_.sums.data() + i * d_ + first, last - first,
        work_.x.data() + i * work_.stride + first);
}

void TransformerEngine::normalise_stream(const Norm& norm, Share share) {
  for (auto i = share.begin(work_.n); i < share.end(work_.n); ++i) {
    float* const x = work_.x.data() + i * work_.stride;
    layer_norm(x, norm.weight, norm.bias, d_, epsilon_, x);
  }
#pragma omp barrier
}

float* TransformerEngine::slot(const Row& row, std::int64_t position, std::size_t layer,
                               int which) const {
  const auto part = static_cast<std::int64_t>(2 * layer) + which;
  return row.pages[static_cast<std::size_t>(position / kPageTokens)]->data() +
         (part * kPageTokens + position % kPageTokens) * d_;
}

// Rotates the queries and keys where positions do that, and puts keys and values in their slot.
void TransformerEngine::remember(const Token& token, std::size_t layer, float* qkv) const {
  for (std::size_t i = 0; i < frequency_.size(); ++i) {
    const double angle = static_cast<double>(token.position) * frequency_[i];
    const auto cos = static_cast<float>(std::cos(angle)), sin = static_cast<float>(std::sin(angle));
    const auto half = static_cast<std::int64_t>(frequency_.size());
    for (std::int64_t head = 0; head < 2 * heads_; ++head) {  // of queries, then of keys
      float* const x = qkv + head * width_ + static_cast<std::int64_t>(i);
      const float first = x[0], second = x[half];
      x[0] = first * cos - second * sin;
      x[half] = second * cos + first * sin;
    }
  }
  const Row& row = rows_[token.row];
  std::copy_n(qkv + d_, d_, slot(row, token.position, layer, 0));
  std::copy_n(qkv + 2 * d_, d_, slot(row, token.position, layer, 1));
}

// softmax(q k^T / sqrt(width)) v over the positions that the row holds, up to the token's own.
void TransformerEngine::attend(const Token& token, std::size_t layer, std::int64_t head,
                               const float* q, float* out, std::vector<float>& scores) const {
  const Row& row = rows_[token.row];
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width_)));
  const auto each_page = [&](const auto& body) {
    for (auto begin = row.begin; begin <= token.position;) {
      const auto end = std::min(token.position + 1, (begin / kPageTokens + 1) * kPageTokens);
      body(begin, end - begin);
      begin = end;
    }
  };
  const auto held = token.position + 1 - row.begin;
  each_page([&](std::int64_t begin, std::int64_t n) {
    float* const to = scores.data() + begin - row.begin;
    attention_scores(q, slot(row, begin, layer, 0) + head * width_, d_, n, width_, scale, to);
    if (slopes_.empty()) return;
    for (std::int64_t i = 0; i < n; ++i)
      to[i] -=
          slopes_[static_cast<std::size_t>(head)] * static_cast<float>(token.position - begin - i);
  });
  const auto total =
      exp_weights(scores.data(), held, max_of(scores.data(), held), 1, scores.data());
  const auto share = static_cast<float>(1 / total);
  for (std::int64_t i = 0; i < held; ++i) scores[static_cast<std::size_t>(i)] *= share;
  std::fill_n(out, width_, 0.0f);
  each_page([&](std::int64_t begin, std::int64_t n) {
    add_weighted(scores.data() + begin - row.begin, slot(row, begin, layer, 1) + head * width_, d_,
                 n, width_, out);
  });
}

}  // namespace infer
