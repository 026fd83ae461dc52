#pragma once
// A transformer, or the decoder of an encoder-decoder, decoded on the CPU by loops of its own:
// reading the weights once a call is all that it waits for.
//
// One OpenMP region a call: every thread computes its share of each matrix's outputs for all rows
// fed, then waits for the others. Products go four rows of weights at a time and ask for the next
// four while they compute. Weights are float32, bfloat16 or int8 (converted in registers; sums are
// float32). Keys and values lie in PagedRows. What a row gets does not depend on the rows beside
// it, to the last bit.

#include <memory>
#include <optional>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "infer/decode/decode_weights.h"
#include "infer/decode/paged_rows.h"
#include "infer/decode/team_share.h"
#include "infer/loops/turns.h"
#include "nn/layers/block.h"
#include "nn/layers/layers.h"
#include "nn/layers/positions.h"

namespace infer {

class TransformerEngine : public Engine {
 public:
  /// A transformer with float32 or bfloat16 weights on the CPU, or an encoder-decoder with float32.
  static bool fits(const nn::Model& model, torch::Device device);
  /// The model's weights must stay as they are while it lives. Throws Error{bug} if a block lacks
  /// one.
  TransformerEngine(nn::Model& model, Precision precision);

  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  bool takes_back() const override { return true; }
  void take_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *head_; }

 private:
  static constexpr std::int64_t kChunk = 48;  // tokens that go through the layers together

  struct Cross {  // attention over a source
    LayerNormed norm;
    Affine query, project;
  };
  struct Layer {
    LayerNormed norm1, norm2;
    std::optional<LayerNormed> out1, out2;  // of what a sub-layer gives, before it is added
    std::optional<LayerNormed> q_norm, k_norm;
    Affine qkv, project, expand, reduce;
    std::optional<Affine> factor;  // gated: what the activated outputs of expand are multiplied by
    std::int64_t window;           // tokens it sees, its own among them
    std::size_t turns = 0;         // which of turns_
    bool turned = true;            // queries and keys are
    std::optional<Cross> cross;
  };
  struct Source {  // keys and values of one source, from the encoder
    std::int64_t length;
    std::vector<float> entries;  // (layers, 2, length, d)
  };
  // One token on its way through the layers.
  struct Token {
    std::size_t row;
    std::int64_t id, position;
  };
  // Working memory for kChunk tokens at most; what products read is padded with zeros.
  struct Work {
    std::int64_t n = 0, stride = 0, attended_stride = 0, inner_stride = 0;
    std::vector<float> x;         // (n, stride): the residual stream
    std::vector<float> qkv;       // (n, d_all): queries, keys, values
    std::vector<float> turns;     // (turns_, n, 2, pairs): cosines and sines of rotary positions
    std::vector<float> attended;  // (n, attended_stride): (heads, width), zeros
    std::vector<float> inner;     // (n, inner_stride)
    std::vector<float> factors;   // (n, inner_stride), where gated
    std::vector<float> sums;      // (n, d): what is added to x
    struct Own {                  // of a thread
      std::vector<float> normed;  // (n, stride)
      std::vector<float> scores;  // as many as positions held, or as a source has
    };
    std::vector<Own> own;
  };
  /// Of (out, in) the rows from `first`, as many as `rows`.
  Affine affine(const torch::Tensor& weight, const torch::Tensor& bias, std::int64_t out,
                std::int64_t in, std::int64_t first, std::int64_t rows);
  Affine affine(const torch::Tensor& weight, const torch::Tensor& bias, std::int64_t out,
                std::int64_t in) {
    return affine(weight, bias, out, in, 0, out);
  }
  LayerNormed norm(const torch::Tensor& factors, const torch::Tensor& bias, std::int64_t d);
  std::optional<LayerNormed> norm(const nn::LayerNorm* of);
  const float* values(const torch::Tensor& weight, std::int64_t size);
  Layer layer_of(const nn::Block& block);

  void encode_sources(const std::vector<Feed>& feeds);
  void place(Token& token);
  void prepare(const std::vector<Token>& tokens);
  void run(const std::vector<Token>& tokens, float* f, float* g);
  void layer(std::size_t index, const std::vector<Token>& tokens, TeamShare share, float* g);
  const float* normed(const LayerNormed& norm, TeamShare share);
  void feed_forward(const Layer& layer, const float* fed, TeamShare share);
  void multiply(const Affine& map, const float* x, std::int64_t ldx, TeamShare share, float* y,
                std::int64_t ldy) const;
  void add_to_stream(TeamShare share, const Affine& made, const std::optional<LayerNormed>& out);
  void normalise_stream(const LayerNormed& norm, TeamShare share);
  bool norms_inputs() const {
    return place_ != nn::NormPlace::post && place_ != nn::NormPlace::sublayer;
  }
  void remember(std::int64_t index, const Token& token, std::size_t layer);
  void attend(const Token& token, std::size_t layer, std::int64_t head, const float* q, float* out,
              std::vector<float>& scores) const;
  void read_sources(std::size_t layer, const std::vector<Token>& tokens, TeamShare share);
  void attend_source(const Source& source, std::size_t layer, std::int64_t head, const float* q,
                     float* out, std::vector<float>& scores) const;
  // Keys are part 2 layer of a token's slots, values the next.
  float* slot(std::size_t row, std::int64_t position, std::size_t layer, int which) const {
    return slots_.slot(row, position, static_cast<std::int64_t>(2 * layer) + which);
  }

  nn::Model& model_;
  Precision precision_;
  nn::Positions positions_;
  nn::Activation activation_;
  nn::NormPlace place_;
  nn::NormKind norm_kind_;
  bool key_is_output_;
  float epsilon_;
  std::int64_t d_, inner_;
  nn::HeadShape heads_;
  std::vector<torch::Tensor> vectors_;  // norms and biases as float32
  std::vector<Layer> layers_;
  std::optional<LayerNormed> final_norm_;
  torch::Tensor position_table_;  // learned: (context, d)
  std::vector<float> slopes_;     // alibi: (heads)
  // Rotary positions of the layers with a window, if they differ, behind those of the others.
  std::vector<Turns> turns_;
  float scale_, cap_;  // of scores
  std::shared_ptr<nn::Head> head_;
  PagedRows slots_;
  std::vector<std::shared_ptr<const Source>> sources_;  // of each row; null: none
  Work work_;
};

}  // namespace infer
