#pragma once
// Lists the architectures that LayeredEngine supports.
// Decodes a model on the CPU with hand-written loops: parts read a residual stream and add to it.
//
// Each chunk of tokens runs in one OpenMP region. Every thread has a copy of the stream, so that
// threads synchronise only where they share a part's products. Weights are float32, bfloat16 or
// int8; sums are float32. Results of a row do not depend on the other rows, bit for bit.

#include "infer/decode/decode_engine.h"
#include "infer/loops/part.h"

namespace infer {

/// A step x = after(x + part(before(x))) in a residual model, else x = part(before(x)).
struct LayerStep {
  std::optional<LayerNormed> before = {};
  std::unique_ptr<Part> part;
  std::optional<LayerNormed> after = {};
  /// Whether g is the part's input, or its keys() if defined.
  bool gives_keys = false;
};

/// Description of an architecture for the engine.
struct LayeredModel {
  DecodeWeights weights;  ///< owns the memory of the parts' pointers
  std::int64_t d_key;
  bool residual = true;
  std::vector<LayerStep> steps = {};
  std::optional<LayerNormed> final_norm = {};
  float scale = 1;             ///< factor of f
  bool key_is_output = false;  ///< g is f before scaling; otherwise one step provides the keys
};

class LayeredEngine : public Engine {
 public:
  /// `model` must outlive the engine, with unchanged weights.
  LayeredEngine(nn::Model& model, LayeredModel layered, Precision precision);

  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<RowInput>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  /// mark() copies every row; roll_back() feeds the kept tokens again.
  bool takes_back() const override { return true; }
  void mark() override;
  void roll_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *head_; }

 private:
  static constexpr std::int64_t kChunk = 48;  // tokens in one pass through the layers

  void choose(const std::vector<std::int64_t>& rows);
  void prepare(const std::vector<std::int64_t>& ids);
  void run(float* f, float* g);
  void steps(TeamShare share, float* f, float* g);

  nn::Model& model_;
  LayeredModel layered_;
  std::int64_t d_;
  std::shared_ptr<nn::Head> head_;
  std::vector<std::int64_t> lengths_;            // number of tokens fed to each row since its reset
  std::int64_t rows_ = 0;                        // after mark(), the copied rows follow them
  std::optional<std::vector<RowInput>> marked_;  // of the call after mark(); rows then exist twice
  Chunk chunk_;
  torch::Tensor embedded_;    // (n, d)
  std::vector<Buffer> made_;  // output of each step: (n, out)
  struct Own {                // for each thread
    Buffer stream, normed;    // (n, padded(d))
  };
  std::vector<Own> own_;
};

/// Returns the description of a float32 model on the CPU: mosaic without bounded memories, mosaic2,
/// gla, lstm, srupp, transformer-xl; otherwise nullopt. The model must outlive it, with unchanged
/// weights and layer reach.
std::optional<LayeredModel> layered_model(
    nn::Model& model, torch::Device device, Precision precision);

/// Returns a description without steps.
LayeredModel started(const nn::Model& model, Precision precision);
/// Returns the prefix of a layer's weights.
inline std::string layer_name(std::int64_t i) { return "h." + std::to_string(i); }
/// Returns the feed-forward network LAYER.mlp.
std::unique_ptr<Part> feed_forward(
    LayeredModel& of, const std::string& layer, const nn::ModelOptions& options);

/// Descriptions of the architectures, each in the file of its name.
LayeredModel layered_gla(nn::Model& model, Precision precision);
LayeredModel layered_lstm(nn::Model& model, Precision precision);
LayeredModel layered_mosaic(nn::Model& model, Precision precision);
LayeredModel layered_mosaic2(nn::Model& model, Precision precision);
LayeredModel layered_srupp(nn::Model& model, Precision precision);
LayeredModel layered_transformer_xl(nn::Model& model, Precision precision);

}  // namespace infer
