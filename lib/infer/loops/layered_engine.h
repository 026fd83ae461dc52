#pragma once
// A model decoded on the CPU by loops of its own: a residual stream that parts read and add to.
//
// One OpenMP region a chunk of tokens, in which every thread has a copy of the stream, so that the
// threads wait for each other only where a part's products are shared out. Weights are float32,
// bfloat16 or int8; sums are float32. What a row gets does not depend on the rows beside it, to the
// last bit.

#include <memory>
#include <optional>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "infer/decode/decode_weights.h"
#include "infer/loops/part.h"

namespace infer {

/// x = after(x + part(before(x))) in a residual model, else x = part(before(x)).
struct LayerStep {
  std::optional<LayerNormed> before = {};
  std::unique_ptr<Part> part;
  std::optional<LayerNormed> after = {};
  /// What the part reads is g, or what it says its keys are.
  bool gives_keys = false;
};

/// What an architecture is to the engine.
struct LayeredModel {
  DecodeWeights weights;  ///< the parts' pointers lead here
  std::int64_t d_key;
  bool residual = true;
  std::vector<LayerStep> steps = {};
  std::optional<LayerNormed> final_norm = {};
  float scale = 1;             ///< of f
  bool key_is_output = false;  ///< g is f before it is scaled; else one step gives keys
};

class LayeredEngine : public Engine {
 public:
  /// `model` must outlive it, its weights as they are.
  LayeredEngine(nn::Model& model, LayeredModel layered, Precision precision);

  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  /// mark() keeps every row a second time, take_back() feeds what is kept once more.
  bool takes_back() const override { return true; }
  void mark() override;
  void take_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *head_; }

 private:
  static constexpr std::int64_t kChunk = 48;  // tokens that go through the layers together

  void choose(const std::vector<std::int64_t>& rows);
  void prepare(const std::vector<std::int64_t>& ids);
  void run(float* f, float* g);
  void steps(TeamShare share, float* f, float* g);

  nn::Model& model_;
  LayeredModel layered_;
  std::int64_t d_;
  std::shared_ptr<nn::Head> head_;
  std::vector<std::int64_t> lengths_;  // tokens a row has been fed since it was fresh
  std::int64_t rows_ = 0;              // behind them, from mark() on, stand those that it kept
  std::optional<std::vector<Feed>> marked_;  // of the call after mark(); rows stand there twice
  Chunk chunk_;
  torch::Tensor embedded_;    // (n, d)
  std::vector<Buffer> made_;  // what each step makes: (n, out)
  struct Own {                // of a thread
    Buffer stream, normed;    // (n, padded(d))
  };
  std::vector<Own> own_;
};

}  // namespace infer
