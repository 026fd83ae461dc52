#pragma once
// Everything that defines a model's function: written to config.json, offered as flags by train.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"

namespace nn {

/// Shared by all architectures.
struct ShapeOptions {
  std::int64_t layers = 4;
  std::int64_t d_model = 256;
  std::int64_t heads = 4;
  std::int64_t d_ff = 0;            ///< 0: 4 d_model
  double dropout = 0.1;             ///< residual and embedding
  double attention_dropout = 0.0;   ///< on attention weights
  double activation_dropout = 0.0;  ///< inside the FFN
  double head_dropout = 0.0;        ///< on f before the head
  std::string memory_key = "last-ffn-input";
  std::string init = "fairseq";
  std::int64_t ffn_width() const { return d_ff > 0 ? d_ff : 4 * d_model; }
  void fields(core::FieldList& f);
};

/// Input embedding and softmax.
struct VocabularyOptions {
  bool tied = true;                   ///< the head shares the embedding
  std::vector<std::int64_t> cutoffs;  ///< empty: plain softmax
  double factor = 4;                  ///< width of band i is d_embedding / factor^i
  std::int64_t d_embedding = 0;       ///< width of band 0; 0: d_model
  bool tied_projections = true;
  double tail_dropout = 0;
  bool scale_embedding = true;  ///< times sqrt(d_model), as fairseq
  bool head_bias = false;       ///< a number a word, and a slot of an adaptive softmax
  double logit_cap = 0;         ///< c: scores s become c tanh(s / c) (Gemma 2); 0: they stay
  void fields(core::FieldList& f);
};

/// Rotary positions: which angles, of how much of a head.
struct RopeOptions {
  double theta = 10000;
  double share = 1;  ///< of a head's width; the rest stays as it is
  std::string scaling = "none";
  double factor = 1;                     ///< how many times as far as without scaling
  std::int64_t trained = 8192;           ///< tokens of a row before scaling
  double low = 1, high = 4;              ///< llama3: turns in `trained` tokens where scaling ends
  double slow_beta = 1, fast_beta = 32;  ///< yarn: the same
  double length = 0;  ///< of turned queries and keys; 0: 1, or what yarn makes it
  /// longrope: what the angle of each pair is divided by; and of rows of more than `trained` tokens,
  /// which are refused here and read by others.
  std::vector<double> factors, long_factors;
  /// b: queries at p are multiplied by 1 + b ln(1 + floor(p / trained)), which is 1 in rows of
  /// `trained` tokens; longer ones are refused (Ministral 3).
  double query_growth = 0;
  std::int64_t skip = 0;  ///< each so-manieth layer turns nothing (SmolLM 3); 0: all turn
  /// Of layers with a window, which nothing scales (Gemma 3); 0: as theirs.
  double local_theta = 0;
  void fields(core::FieldList& f);
};

struct TransformerOptions {
  std::string positions = "learned";
  std::int64_t context = 1024;  ///< rows of learned positions
  std::string norm = "pre";
  bool final_norm = true;
  std::string activation = "gelu";
  bool bias = true;
  double norm_epsilon = 1e-5;
  std::string norm_kind = "layer";
  std::string feed_forward = "plain";
  std::vector<std::string> bias_of;  ///< with bias; empty: of all
  std::int64_t kv_heads = 0;         ///< 0: heads
  std::int64_t d_head = 0;           ///< 0: d_model / heads
  std::string qk_norm = "none";
  std::vector<std::int64_t> attention_window;  ///< layer i: element i % size; 0 or empty: all
  double attention_scale = 0;  ///< of products of queries and keys; 0: 1 / sqrt(width of a head)
  double attention_cap = 0;    ///< c: scaled scores s become c tanh(s / c) (Gemma 2); 0: they stay
  RopeOptions rope;
  /// Whether matrices or norms of this kind have biases.
  bool has_bias(const std::string& kind) const;
  void fields(core::FieldList& f);
  /// Those of the fields that other architectures refuse.
  void own_fields(core::FieldList& f);
};

/// The heads of a transformer's self-attention.
struct HeadShape {
  std::int64_t heads, kv_heads;  ///< of queries; of keys and of values
  std::int64_t width;
  std::int64_t rotated;  ///< the part of the width that rotary positions turn
  std::int64_t d_query() const { return heads * width; }
  std::int64_t d_key() const { return kv_heads * width; }
  std::int64_t d_all() const { return d_query() + 2 * d_key(); }
};
HeadShape head_shape(const ShapeOptions& shape, const TransformerOptions& options);

/// Large tables that layers of a transformer look rows up in.
struct MemoryLayerOptions {
  std::string kind = "none";
  std::vector<std::int64_t> layers;  ///< from 1, the lowest; empty: the middle one
  std::int64_t heads = 4;
  std::int64_t keys = 128;  ///< product-key: half keys of a side; there are as many values squared
  std::int64_t top_k = 32;  ///< product-key: values that a head reads
  std::int64_t d_key = 0;   ///< product-key: width of a key, even; 0: half of d_model
  bool shared = true;       ///< product-key: the layers share the values
  std::int64_t rows = 16384;  ///< ngram: of each table
  std::int64_t d_ngram = 0;   ///< ngram: what is read for an n, all heads together; 0: d_model
  bool gate = true;           ///< product-key: silu gate and projection of what is read
  bool any() const { return kind != "none"; }
  /// Of `of` layers number `layer`, from 0.
  bool has(std::int64_t layer, std::int64_t of) const;
  void fields(core::FieldList& f);
};

struct LstmOptions {
  std::int64_t d_recurrent = 0;  ///< width of the cells; 0: d_model
  void fields(core::FieldList& f);
};

/// How a gla's matrices are written and what they forget.
struct GlaOptions {
  std::string update = "sum";
  std::string decay = "gated";
  std::int64_t convolution = 4;  ///< steps that queries, keys and values see, with delta; 1: one
  void fields(core::FieldList& f);
};

struct MosaicOptions {
  std::int64_t persistent_slots = 0;  ///< a head; 0: 3.5 d_model
  bool scale_output = true;           ///< f times 1 / sqrt(d_model)
  void fields(core::FieldList& f);
};

struct Mosaic2Options {
  std::int64_t short_term = 256;  ///< newest pairs, which the short-term memory holds
  std::int64_t delay = 64;        ///< how far back the long-term memory's newest pair is
  std::int64_t most_delay = 256;  ///< in training it is drawn from `delay` to this
  void fields(core::FieldList& f);
};

/// What the layers of transformer-xl and srupp carry from call to call.
struct LayerMemoryOptions {
  std::string layer_memory = "512";  ///< past inputs kept by each layer; see memory_pattern.h
  std::string same_length = "off";   ///< "on": a token sees as many before it as its layer keeps
  void fields(core::FieldList& f);
};

struct TransformerXlOptions {
  std::int64_t clamp_length = 0;  ///< farther tokens count as so far away; 0: no bound
  bool shared_biases = true;      ///< content and position bias: one of each for all layers
  void fields(core::FieldList& f);
};

struct SruppOptions {
  std::int64_t d_projection = 0;     ///< width of the attention; 0: d_model / 4
  std::int64_t attention_every = 1;  ///< every k-th layer attends; 0: none
  std::int64_t attention_last = 0;   ///< only the last n layers do; 0: by attention_every
  double forget_bias = 0, highway_bias = -2;
  void fields(core::FieldList& f);
};

/// An architecture adds its struct and its line here, and its maker in registry.cpp.
struct ModelOptions {
  std::string arch = "transformer";
  ShapeOptions shape;
  VocabularyOptions vocabulary;
  TransformerOptions transformer;
  MemoryLayerOptions memory_layer;
  LstmOptions lstm;
  GlaOptions gla;
  MosaicOptions mosaic;
  Mosaic2Options mosaic2;
  LayerMemoryOptions layer_memory;
  TransformerXlOptions transformer_xl;
  SruppOptions srupp;
  void fields(core::FieldList& f);
};

}  // namespace nn
