// The sources of TransformerEngine. The model's own modules encode each source once, and every
// token of its rows reads the result. Rows with one source share the result.

#include "infer/loops/transformer_engine.h"

#include <omp.h>

#include "nn/arch/transformer.h"

namespace infer {

bool TransformerEngine::fits(
    const nn::Model& model, torch::Device device, const PackedModel* packed) {
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

TransformerEngine::TransformerEngine(
    nn::Model& model, Precision precision, const PackedModel* packed)
    : model_(model), precision_(precision),
      weights_(*model.architecture, precision, packed, /*halves=*/true) {
  const auto& shape = model.options.shape;
  const auto& options = model.options.transformer;
  positions_ = nn::parse_positions(options.positions);
  place_ = nn::parse_norm_placement(options.norm);
  rms_ = nn::parse_norm_kind(options.norm_kind) != nn::NormKind::layer;
  key_is_output_ = shape.memory_key == "output";
  epsilon_ = options.norm_epsilon;
  d_ = shape.d_model, heads_ = nn::head_shape(shape, options);
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
  layer.norm1 = norm({w.norm1, w.norm1_bias}, d_);
  layer.norm2 = norm({w.norm2, w.norm2_bias}, d_);
  if (place_ == nn::NormPlacement::sublayer) layer.out1 = layer.norm1, layer.out2 = layer.norm2;
  if (const auto* const out = block.ln_1_out()) layer.out1 = norm(out);
  if (const auto* const out = block.ln_2_out()) layer.out2 = norm(out);
  layer.q_norm = norm(block.attention().q_norm());
  layer.k_norm = norm(block.attention().k_norm());
  layer.qkv = weights_.affine({w.qkv, w.qkv_bias}, heads_.d_all(), d_);
  layer.project = weights_.affine({w.project, w.project_bias}, d_, heads_.d_query());
  const auto& options = model_.options;
  layer.network.emplace(weights_, WeightAndBias{w.expand, w.expand_bias},
      WeightAndBias{w.reduce, w.reduce_bias}, d_, options.shape.ffn_width(),
      nn::parse_activation(options.transformer.activation), block.gated());
  if (!block.reads_source()) return layer;
  const auto c = block.cross_weights();
  layer.cross =
      Cross{norm({c.norm, c.norm_bias}, d_), weights_.affine({c.query, c.query_bias}, d_, d_),
          weights_.affine({c.project, c.project_bias}, d_, d_)};
  return layer;
}

LayerNormed TransformerEngine::norm(const WeightAndBias& factors, std::int64_t d) {
  return weights_.norm(factors, d, epsilon_, rms_);
}

// Returns nothing if the model has no such norm. A norm of heads is as wide as a head.
std::optional<LayerNormed> TransformerEngine::norm(const nn::LayerNorm* of) {
  if (of == nullptr) return std::nullopt;
  return norm({of->factors(), of->bias}, of->weight.numel());
}

void TransformerEngine::open(std::int64_t rows) {
  slots_.open(rows);
  sources_.assign(static_cast<std::size_t>(rows), nullptr);
}

void TransformerEngine::select(const std::vector<std::int64_t>& rows) {
  slots_.select(rows);
  sources_ = chosen(sources_, rows);
}

void TransformerEngine::roll_back(const std::vector<std::int64_t>& tokens) {
  for (std::size_t row = 0; row < slots_.size(); ++row) slots_.roll_back(row, tokens[row]);
}

nn::Hidden TransformerEngine::feed(const std::vector<RowInput>& feeds) {
  std::vector<Token> tokens;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].fresh) slots_.clear(row), sources_[row] = nullptr;
    for (const auto id : feeds[row].tokens) tokens.push_back({row, id, 0});
  }
  encode_sources(feeds);
  const auto n = static_cast<std::int64_t>(tokens.size());
  const nn::Hidden hidden{torch::empty({n, d_}), torch::empty({n, d_})};
  const bool halves = precision_ == Precision::bfloat16 || precision_ == Precision::int8;
  const auto step = halves && has_half_products() && !has_tile_products() ? kHalfChunk : kChunk;
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
    core::bad_data("a row of {} tokens is longer than the {} learned positions", token.position + 1,
        position_table_.size(0));
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
  n_ = n;
  x_.fit(n, layers_[0].qkv.matrix.padded_in());
  qkv_.fit(n, heads_.d_all());
  const auto pairs = turns_.empty() ? 0 : heads_.rotated / 2;
  turned_.fit(std::ssize(turns_) * n, 2 * pairs);
  attended_.fit(n, layers_[0].project.matrix.padded_in());
  layers_[0].network->fit(room_, n);
  sums_.fit(n, d_);
  const auto threads = at::get_num_threads();
  normed_.resize(static_cast<std::size_t>(threads));
  for (auto& normed : normed_) normed.fit(n, x_.stride());
  make_tiles(tokens);
  scores_stride_ = longest + 2 * PagedRows::kPageTokens;  // whole pages
  std::int64_t most = 1;
  for (const auto& tile : tiles_) most = std::max(most, tile.tokens * tile.heads);
  scores_.fit(threads, most * scores_stride_);
  const auto vectors = embedded(ids);
  const float* const from = vectors.const_data_ptr<float>();
  torch::Tensor waves;
  if (positions_ == nn::Positions::sinusoidal) {
    const auto positions = core::mapped(tokens, &Token::position);
    waves = nn::sinusoids(torch::tensor(positions), d_).to(torch::kFloat32).contiguous();
  }
  for (std::int64_t i = 0; i < std::ssize(turns_) * n; ++i)
    turns_[static_cast<std::size_t>(i / n)].at(
        tokens[static_cast<std::size_t>(i % n)].position, turned_.row(i));
  for (std::int64_t i = 0; i < n; ++i) {
    float* const x = x_.row(i);
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
    for (auto i = share.begin(n_); i < share.end(n_); ++i) {
      const float* const x = x_.row(i);
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
void TransformerEngine::layer(
    std::size_t index, const std::vector<Token>& tokens, TeamShare share, float* g) {
  const Layer& layer = layers_[index];
  const auto n = n_;
  const Rows attending = norms_inputs() ? normed(layer.norm1, share) : x_.rows();
  multiply(layer.qkv, attending, share, qkv_);
#pragma omp barrier
  for (auto i = share.begin(n); i < share.end(n); ++i)
    remember(i, tokens[static_cast<std::size_t>(i)], index);
#pragma omp barrier
  const auto tiles = std::ssize(tiles_);
  for (auto i = share.begin(tiles); i < share.end(tiles); ++i)
    attend(tiles_[static_cast<std::size_t>(i)], tokens, index, scores_.of(share.thread));
#pragma omp barrier
  multiply(layer.project, attended_.rows(), share, sums_);
  std::optional<Rows> fed;
  if (place_ == nn::NormPlacement::parallel) {
    fed = normed(layer.norm2, share);
#pragma omp barrier
  }
  add_to_stream(share, layer.project, layer.out1);
#pragma omp barrier
  if (place_ == nn::NormPlacement::post) normalise_stream(layer.norm1, share);
  if (layer.cross) read_sources(index, tokens, share);
  if (!fed) fed = norms_inputs() ? normed(layer.norm2, share) : x_.rows();
  if (g != nullptr)
    for (auto i = share.begin(n); i < share.end(n); ++i) std::copy_n((*fed)[i], d_, g + i * d_);
  layer.network->run(n, share, *fed, room_, sums_.data(), sums_.stride());
  add_to_stream(share, layer.network->last(), layer.out2);
#pragma omp barrier
  if (place_ == nn::NormPlacement::post) normalise_stream(layer.norm2, share);
}

// Normalises the whole stream into the thread's own memory, which is faster than waiting for
// shares.
Rows TransformerEngine::normed(const LayerNormed& norm, TeamShare share) {
  auto& out = normed_[static_cast<std::size_t>(share.thread)];
  for (std::int64_t i = 0; i < n_; ++i) norm(x_.row(i), out.row(i));
  return out.rows();
}

// Computes the thread's outputs of an affine map with its bias.
void TransformerEngine::multiply(const Affine& map, Rows x, TeamShare share, Buffer& y) const {
  map.multiply(x.data, n_, x.stride, share, y.data(), y.stride());
}

// Adds the outputs of this thread to the residual stream. If a norm precedes the addition, the
// thread first waits for the outputs of all threads.
void TransformerEngine::add_to_stream(
    TeamShare share, const Affine& made, const std::optional<LayerNormed>& out) {
  if (out) {
#pragma omp barrier
    for (auto i = share.begin(n_); i < share.end(n_); ++i) {
      (*out)(sums_.row(i), sums_.row(i));
      add(sums_.row(i), d_, x_.row(i));
    }
    return;
  }
  const auto [first, last] = made.range(share);
  for (std::int64_t i = 0; i < n_; ++i) add(sums_.row(i) + first, last - first, x_.row(i) + first);
}

void TransformerEngine::normalise_stream(const LayerNormed& norm, TeamShare share) {
  for (auto i = share.begin(n_); i < share.end(n_); ++i) norm(x_.row(i), x_.row(i));
#pragma omp barrier
}

// Normalises and rotates the token's queries and keys if the model does, and stores keys and values
// in their slot.
void TransformerEngine::remember(std::int64_t index, const Token& token, std::size_t layer) {
  float* const q = qkv_.row(index);
  float* const k = q + heads_.d_query();
  const auto normalise_heads = [&](const std::optional<LayerNormed>& norm, float* x,
                                   std::int64_t d) {
    if (!norm) return;
    for (float* part = x; part < x + d; part += norm->width) (*norm)(part, part);
  };
  normalise_heads(layers_[layer].q_norm, q, heads_.d_query());
  normalise_heads(layers_[layer].k_norm, k, heads_.d_key());
  const auto pairs = turns_.empty() ? 0 : heads_.rotated / 2;
  const auto which = static_cast<std::int64_t>(layers_[layer].turns) * n_ + index;
  const float* const cos = turned_.row(which);
  const float* const sin = cos + pairs;
  const bool turns = pairs > 0 && layers_[layer].turned;
  for (float* x = q; turns && x < k + heads_.d_key(); x += heads_.width)
    turn_pairs(cos, sin, pairs, x);
  constexpr auto kLanes = PagedRows::kPageTokens;
  const auto part = static_cast<std::int64_t>(2 * layer), lane = token.position % kLanes,
             d = heads_.d_key(), width = heads_.width;
  const auto keep = [&]<class T>(const T* made) {  // keys, then values
    T* const keys = slots_.page<T>(token.row, token.position, part);
    T* const values = slots_.page<T>(token.row, token.position, part + 1);
    for (std::int64_t i = 0; i < d; ++i) keys[i * kLanes + lane] = made[i];
    for (std::int64_t i = 0; i < d; i += width)
      std::copy_n(made + d + i, width, values + i * kLanes + lane * width);
  };
  if (!halves_) return keep(k);
  thread_local std::vector<store::Half> made;
  made.resize(static_cast<std::size_t>(2 * d));
  store::to_half(k, made);
  keep(made.data());
}

// Returns a head's keys (width, kPageTokens) or values (kPageTokens, width) of a page.
const float* TransformerEngine::head_of(
    std::size_t row, std::int64_t page, std::int64_t part, std::int64_t head) const {
  const auto numbers = heads_.width * PagedRows::kPageTokens;
  if (!halves_) return slots_.page(row, page, part) + head * numbers;
  thread_local std::vector<float> whole;
  whole.resize(static_cast<std::size_t>(numbers));
  store::to_float(slots_.page<store::Half>(row, page, part) + head * numbers, whole);
  return whole.data();
}

void TransformerEngine::make_tiles(const std::vector<Token>& tokens) {
  tiles_.clear();
  const auto n = std::ssize(tokens), group = heads_.heads / heads_.kv_heads;
  // A few tokens: a head a task, so that all threads have some.
  const auto together = n * heads_.kv_heads < 4 * at::get_num_threads() ? 1
                        : group <= Tile::kMostQueries                   ? group
                                                      : std::gcd(group, Tile::kMostQueries);
  const auto most = Tile::kMostQueries / together;
  for (std::int64_t i = 0, next = 0; i < n; i = next) {
    const auto row = tokens[static_cast<std::size_t>(i)].row;
    while (next < n && next - i < most && tokens[static_cast<std::size_t>(next)].row == row) ++next;
    for (std::int64_t head = 0; head < heads_.heads; head += together)
      tiles_.push_back({i, next - i, head, together});
  }
}

// softmax(q k^T / sqrt(width)) v for each query of a tile, over the positions in the row and the
// layer's window, up to the token's own position. All queries read a page before the next.
void TransformerEngine::attend(
    const Tile& tile, const std::vector<Token>& tokens, std::size_t layer, float* scores) {
  struct Query {
    const float* q;
    float *scores, *out;  // scores of `begin` and later
    std::int64_t begin, end;
  };
  static_assert(PagedRows::kPageTokens == kScoreLanes);
  constexpr auto kPage = PagedRows::kPageTokens;
  const auto row = tokens[static_cast<std::size_t>(tile.token)].row;
  const auto width = heads_.width, window = layers_[layer].window;
  const auto head = tile.head / (heads_.heads / heads_.kv_heads);
  const auto part = static_cast<std::int64_t>(2 * layer);
  std::array<Query, Tile::kMostQueries> queries;
  const auto count = static_cast<std::size_t>(tile.tokens * tile.heads);
  std::int64_t from = std::numeric_limits<std::int64_t>::max(), to = 0;
  for (std::size_t r = 0; r < count; ++r) {
    const auto i = tile.token + static_cast<std::int64_t>(r) / tile.heads,
               at = (tile.head + static_cast<std::int64_t>(r) % tile.heads) * width,
               position = tokens[static_cast<std::size_t>(i)].position;
    const auto begin = std::max(slots_.begin(row), window > position ? 0 : position + 1 - window);
    queries[r] = {qkv_.row(i) + at, scores + static_cast<std::int64_t>(r) * scores_stride_,
        attended_.row(i) + at, begin, position + 1};
    from = std::min(from, begin / kPage * kPage), to = std::max(to, position + 1);
  }
  for (auto page = from; page < to; page += kPage) {
    std::array<const float*, Tile::kMostQueries> q;
    std::array<float*, Tile::kMostQueries> out;
    std::int64_t seeing = 0;
    for (std::size_t r = 0; r < count; ++r) {
      if (page >= queries[r].end || page + kPage <= queries[r].begin) continue;
      q[static_cast<std::size_t>(seeing)] = queries[r].q;
      out[static_cast<std::size_t>(seeing++)] = queries[r].scores + page - from;
    }
    lane_scores(q.data(), seeing, head_of(row, page, part, head), width, scale_, out.data());
  }
  for (std::size_t r = 0; r < count; ++r) {
    auto& query = queries[r];
    const auto held = query.end - query.begin;
    query.scores += query.begin - from;
    if (cap_ > 0) soft_cap(query.scores, held, cap_);
    if (!slopes_.empty()) {
      const auto slope =
          slopes_[static_cast<std::size_t>(tile.head + static_cast<std::int64_t>(r) % tile.heads)];
      for (std::int64_t i = 0; i < held; ++i)
        query.scores[i] -= slope * static_cast<float>(held - 1 - i);
    }
    softmax(query.scores, held);
    std::fill_n(query.out, width, 0.0f);
  }
  for (auto page = from; page < to; page += kPage) {
    const float* const values = head_of(row, page, part + 1, head);
    for (std::size_t r = 0; r < count; ++r) {
      const auto& query = queries[r];
      const auto first = std::max(page, query.begin), last = std::min(page + kPage, query.end);
      if (first < last)
        add_weighted(query.scores + first - query.begin, values + (first - page) * width, width,
            last - first, width, query.out);
    }
  }
}

void TransformerEngine::encode_sources(const std::vector<RowInput>& feeds) {
  std::vector<std::size_t> rows;
  std::size_t longest = 0;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].source.empty()) continue;
    rows.push_back(row);
    longest = std::max(longest, feeds[row].source.size());
  }
  if (rows.empty()) return;
  const torch::NoGradGuard no_gradient;
  const auto ids =
      torch::full({std::ssize(rows), static_cast<std::int64_t>(longest)}, -1, torch::kInt64);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::ranges::copy(feeds[rows[i]].source, ids.data_ptr<std::int64_t>() + i * longest);
  auto& model = dynamic_cast<nn::EncoderDecoder&>(*model_.architecture);
  std::vector<torch::Tensor> parts;  // keys and values of each layer: (B, S, d)
  for (const auto& entries : model.source_entries(ids))
    for (const auto& part : {entries.keys, entries.values})
      parts.push_back(part.transpose(1, 2).flatten(2).contiguous());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto length = std::ssize(feeds[rows[i]].source);
    auto source = std::make_shared<Source>();
    source->length = length;
    for (const auto& part : parts) {
      const float* const from = part.const_data_ptr<float>() + i * longest * d_;
      source->entries.insert(source->entries.end(), from, from + length * d_);
    }
    sources_[rows[i]] = std::move(source);
  }
}

// Computes a thread's share of the attention over the sources. A row without a source is unchanged.
void TransformerEngine::read_sources(
    std::size_t index, const std::vector<Token>& tokens, TeamShare share) {
  const Cross& cross = *layers_[index].cross;
  const auto n = n_, heads = heads_.heads, width = heads_.width;
  const Rows asking = norms_inputs() ? normed(cross.norm, share) : x_.rows();
  multiply(cross.query, asking, share, qkv_);
#pragma omp barrier
  const auto source_of = [&](std::int64_t i) {
    return sources_[tokens[static_cast<std::size_t>(i)].row].get();
  };
  for (auto task = share.begin(n * heads); task < share.end(n * heads); ++task) {
    const auto i = task / heads, head = task % heads;
    if (const Source* const source = source_of(i))
      attend_source(*source, index, head, qkv_.row(i) + head * width,
          attended_.row(i) + head * width, scores_.of(share.thread));
  }
#pragma omp barrier
  multiply(cross.project, attended_.rows(), share, sums_);
  const auto [first, last] = cross.project.range(share);
  for (std::int64_t i = 0; i < n; ++i)
    if (source_of(i) != nullptr) add(sums_.row(i) + first, last - first, x_.row(i) + first);
#pragma omp barrier
  if (!norms_inputs()) normalise_stream(cross.norm, share);
}

// softmax(q k^T / sqrt(width)) v over the whole source.
void TransformerEngine::attend_source(const Source& source, std::size_t layer, std::int64_t head,
    const float* q, float* out, float* scores) const {
  const auto n = source.length, width = heads_.width;
  const float* const keys =
      source.entries.data() + static_cast<std::int64_t>(2 * layer) * n * d_ + head * width;
  const float* const values = keys + n * d_;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  attention_scores(q, keys, d_, n, width, scale, scores);
  softmax(scores, n);
  std::fill_n(out, width, 0.0f);
  add_weighted(scores, values, d_, n, width, out);
}

}  // namespace infer
