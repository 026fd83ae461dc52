#pragma once
// Decodes a transformer, or the decoder of an encoder-decoder, on the CPU with hand-written loops,
// limited by reading the weights once for each call.
//
// Each call runs in one OpenMP region: every thread computes its share of each matrix's outputs for
// all rows, then waits for the others. Products process four rows of weights at a time and prefetch
// the next four. Weights are float32, bfloat16 or int8; sums are float32. With bfloat16 and int8,
// inputs of the layers' products are rounded to bfloat16 as in PackedMatrix::multiply_halves().
// Keys and values are in PagedRows. Results of a row do not depend on the other rows, bit for bit.

#include "infer/decode/decode_engine.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"
#include "nn/layers/block.h"
#include "store/half.h"

namespace infer {

class TransformerEngine : public Engine {
 public:
  /// Returns whether the model is supported: a transformer with float32 or bfloat16 weights on the
  /// CPU, or an encoder-decoder with float32. `packed`: see the constructor.
  static bool fits(
      const nn::Model& model, torch::Device device, const PackedModel* packed = nullptr);
  /// The model's weights must not change while the engine exists. `packed` (null: none) has the
  /// matrices that were taken from the model. Throws Error{bug} if a block lacks a weight.
  TransformerEngine(nn::Model& model, Precision precision, const PackedModel* packed = nullptr);

  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<RowInput>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override { slots_.forget(keep); }
  bool takes_back() const override { return true; }
  bool idle_rows_are_free() const override { return true; }
  bool halve_keys() override {
    slots_ = PagedRows(2 * std::ssize(layers_), heads_.d_key(), sizeof(store::Half));
    return halves_ = true;
  }
  void roll_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *head_; }

 private:
  // Tokens in one pass through the layers; kHalfChunk where 16-bit products read them for each four
  // outputs, so that they have to stay in a cache.
  static constexpr std::int64_t kChunk = 256, kHalfChunk = 96;

  struct Cross {  // cross-attention over a source
    LayerNormed norm;
    Affine query, project;
  };
  struct Layer {
    LayerNormed norm1, norm2;
    std::optional<LayerNormed> out1, out2;  // norms of a sub-layer's output before the addition
    std::optional<LayerNormed> q_norm, k_norm;
    Affine qkv, project;
    std::optional<FeedForward> network;
    std::int64_t window;    // number of visible tokens, including itself
    std::size_t turns = 0;  // index in turns_
    bool turned = true;     // queries and keys are rotated
    std::optional<Cross> cross;
  };
  struct Source {  // keys and values of a source, from the encoder
    std::int64_t length;
    std::vector<float> entries;  // (layers, 2, length, d)
  };
  // A token in the layers.
  struct Token {
    std::size_t row;
    std::int64_t id, position;
  };
  // Queries that one thread computes together: heads that share keys, of a row's tokens.
  struct Tile {
    static constexpr std::int64_t kMostQueries = 32;
    std::int64_t token, tokens, head, heads;
  };
  void make_tiles(const std::vector<Token>& tokens);
  LayerNormed norm(const WeightAndBias& factors, std::int64_t d);
  std::optional<LayerNormed> norm(const nn::LayerNorm* of);
  Layer layer_of(const nn::Block& block);

  void encode_sources(const std::vector<RowInput>& feeds);
  void place(Token& token);
  torch::Tensor embedded(const std::vector<std::int64_t>& ids) const;
  void prepare(const std::vector<Token>& tokens);
  void run(const std::vector<Token>& tokens, float* f, float* g);
  void layer(std::size_t index, const std::vector<Token>& tokens, TeamShare share, float* g);
  Rows normed(const LayerNormed& norm, TeamShare share);
  void multiply(const Affine& map, Rows x, TeamShare share, Buffer& y) const;
  void add_to_stream(TeamShare share, const Affine& made, const std::optional<LayerNormed>& out);
  void normalise_stream(const LayerNormed& norm, TeamShare share);
  bool norms_inputs() const {
    return place_ != nn::NormPlacement::post && place_ != nn::NormPlacement::sublayer;
  }
  void remember(std::int64_t index, const Token& token, std::size_t layer);
  const float* head_of(
      std::size_t row, std::int64_t page, std::int64_t part, std::int64_t head) const;
  void attend(const Tile& tile, const std::vector<Token>& tokens, std::size_t layer, float* scores);
  void read_sources(std::size_t layer, const std::vector<Token>& tokens, TeamShare share);
  void attend_source(const Source& source, std::size_t layer, std::int64_t head, const float* q,
      float* out, float* scores) const;
  nn::Model& model_;
  Precision precision_;
  DecodeWeights weights_;
  std::optional<PackedMatrix> embedding_;  // if taken from the model
  nn::Positions positions_;
  nn::NormPlacement place_;
  bool key_is_output_, rms_;
  double epsilon_;
  std::int64_t d_;
  nn::HeadShape heads_;
  std::vector<Layer> layers_;
  std::optional<LayerNormed> final_norm_;
  torch::Tensor position_table_;  // learned: (context, d)
  std::vector<float> slopes_;     // alibi: (heads)
  // Rotary embeddings; those of layers with a window, if different, follow the others.
  std::vector<Turns> turns_;
  float scale_, cap_;  // of scores
  std::shared_ptr<nn::Head> head_;
  // Part 2 layer has the keys of a page, transposed (d_key, kPageTokens), the next part its values
  // (kv_heads, kPageTokens, width); in float16 if halves_.
  PagedRows slots_;
  bool halves_ = false;
  std::vector<std::shared_ptr<const Source>> sources_;  // for each row; null: none
  // Working memory for the n_ tokens of a chunk; inputs of products are zero-padded.
  std::int64_t n_ = 0;
  Buffer x_;         // (n, padded d): the residual stream
  Buffer qkv_;       // (n, d_all): queries, keys, values
  Buffer turned_;    // (turns_ n, 2 pairs): cosines and sines of rotary embeddings
  Buffer attended_;  // (n, padded heads * width)
  Buffer sums_;      // (n, d): terms to add to x
  FeedForward::Room room_;
  std::vector<Buffer> normed_;  // for each thread: (n, padded d)
  std::vector<Tile> tiles_;
  std::int64_t scores_stride_ = 0;
  ScoreBuffers scores_;  // of a tile's queries (queries, scores_stride_), or of each source token
};

}  // namespace infer
