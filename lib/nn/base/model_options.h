#pragma once
// All options that define a model's function: stored in config.json, offered as flags by train.

#include "core/options.h"

namespace nn {

/// Options common to all architectures.
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

/// Options of the input embedding and the softmax.
struct VocabularyOptions {
  bool tied = true;                   ///< the head shares the embedding
  std::vector<std::int64_t> cutoffs;  ///< empty: plain softmax
  double factor = 4;                  ///< width of band i is d_embedding / factor^i
  std::int64_t d_embedding = 0;       ///< width of band 0; 0: d_model
  bool tied_projections = true;
  double adaptive_softmax_dropout = 0;
  bool scale_embedding = true;  ///< times sqrt(d_model), as fairseq
  bool head_bias = false;       ///< adds a bias for each token, and for each slot of an adaptive
                                ///< softmax
  double logit_softcap = 0;     ///< softcap c: scores s become c tanh(s / c) (Gemma 2); 0: none
  void fields(core::FieldList& f);
};

/// Options of rotary positional embeddings.
struct RopeOptions {
  double theta = 10000;
  double share = 1;  ///< rotated fraction of a head's width (partial rotary factor)
  std::string scaling = "none";
  double factor = 1;                     ///< ratio of the context length to that without scaling
  std::int64_t trained = 8192;           ///< original maximum positions, in tokens
  double low = 1, high = 4;              ///< llama3: rotations within `trained` tokens at which
                                         ///< scaling ends
  double slow_beta = 1, fast_beta = 32;  ///< yarn: rotations within `trained` tokens at which
                                         ///< scaling ends
  double length = 0;  ///< factor on rotated queries and keys; 0: 1, or yarn's value
  /// longrope: divisors of each pair's angle, in rows of at most `trained` tokens and in longer
  /// rows. This project refuses longer rows; other programs use long_factors.
  std::vector<double> factors = {}, long_factors = {};
  /// b: queries at position p are multiplied by 1 + b ln(1 + floor(p / trained)), which is 1 in
  /// rows of `trained` tokens; longer rows are refused (Ministral 3).
  double query_growth = 0;
  std::int64_t skip = 0;  ///< every skip-th layer rotates nothing (SmolLM 3); 0: all layers rotate
  /// theta of layers with a window, without scaling (Gemma 3); 0: theta.
  double local_theta = 0;
  void fields(core::FieldList& f);
};

/// Options of mixtures of experts; see nn/layers/block_stack.h.
struct ExpertOptions {
  std::int64_t count = 0;  ///< in each layer; 0: one network, which reads all tokens
  std::int64_t per_token = 2;
  bool normalised = true;  ///< the weights of a token's experts sum to 1
  bool any() const { return count > 0; }
  void fields(core::FieldList& f);
};

struct TransformerOptions {
  std::string positions = "learned";
  std::int64_t context = 1024;  ///< number of learned positions
  std::string norm = "pre";
  bool final_norm = true;
  std::string activation = "gelu";
  bool bias = true;
  double norm_epsilon = 1e-5;
  std::string norm_kind = "layer";
  std::string feed_forward = "plain";
  std::vector<std::string> bias_of;  ///< kinds with biases, if `bias`; empty: all kinds
  std::int64_t kv_heads = 0;         ///< 0: heads
  std::int64_t d_head = 0;           ///< 0: d_model / heads
  std::string qk_norm = "none";
  std::vector<std::int64_t> attention_window;  ///< layer i uses element i % size; 0 or empty:
                                               ///< unlimited
  double attention_scale = 0;    ///< factor on query-key products; 0: 1 / sqrt(width of a head)
  double attention_softcap = 0;  ///< softcap c: scaled scores s become c tanh(s / c) (Gemma 2); 0:
                                 ///< none
  RopeOptions rope;
  ExpertOptions experts;
  /// Returns whether matrices or norms of this kind have biases.
  bool has_bias(const std::string& kind) const;
  void fields(core::FieldList& f);
  /// Lists the fields that other architectures reject.
  void own_fields(core::FieldList& f);
};

/// Shape of the heads in a transformer's self-attention.
struct HeadShape {
  std::int64_t heads, kv_heads;  ///< number of query heads; of key and value heads
  std::int64_t width;
  std::int64_t rotated;  ///< width that rotary embeddings rotate
  std::int64_t d_query() const { return heads * width; }
  std::int64_t d_key() const { return kv_heads * width; }
  std::int64_t d_all() const { return d_query() + 2 * d_key(); }
};
HeadShape head_shape(const ShapeOptions& shape, const TransformerOptions& options);

/// Options of memory layers: large tables in which layers of a transformer look up rows.
struct MemoryLayerOptions {
  std::string kind = "none";
  std::vector<std::int64_t> layers;  ///< counted from 1, the lowest; empty: the middle layer
  std::int64_t heads = 4;
  std::int64_t keys = 128;    ///< product-key: half keys on each side; the number of values is its
                              ///< square
  std::int64_t top_k = 32;    ///< product-key: number of values read by a head
  std::int64_t d_key = 0;     ///< product-key: width of a key, even; 0: half of d_model
  bool shared = true;         ///< product-key: the layers share the values
  std::int64_t rows = 16384;  ///< ngram: rows of each table
  std::int64_t d_ngram = 0;   ///< ngram: width read for each n, over all heads; 0: d_model
  bool gate = true;           ///< product-key: silu gate and projection of the values read
  bool any() const { return kind != "none"; }
  /// Returns whether layer `layer` (from 0) of `of` layers is a memory layer.
  bool has(std::int64_t layer, std::int64_t of) const;
  void fields(core::FieldList& f);
};

struct LstmOptions {
  std::int64_t d_recurrent = 0;  ///< width of the cells; 0: d_model
  void fields(core::FieldList& f);
};

/// Options of gated linear attention: the update and the decay of its matrices.
struct GlaOptions {
  std::string update = "sum";
  std::string decay = "gated";
  std::int64_t convolution = 4;  ///< with delta, and of mamba2: kernel size, in steps, of the
                                 ///< convolution of queries, keys and values; 1: none
  // With delta, if they differ from those of shape:
  std::int64_t key_heads = 0, value_heads = 0;  ///< 0: heads; each head of keys serves as many
  std::int64_t d_key = 0, d_value = 0;          ///< of a head; 0: d_model / 2 / heads, / heads
  void fields(core::FieldList& f);
};

/// Options of memories of past states; see nn/arch/state_memory.h.
struct StateMemoryOptions {
  std::string kind = "none";
  std::int64_t every = 64;     ///< segments: tokens of a segment
  std::int64_t segments = 16;  ///< segments: kept states
  std::int64_t levels = 16;    ///< fenwick: levels, of 1, 1, 2, 4, ... tokens
  void fields(core::FieldList& f);
};

struct Mamba2Options {
  std::int64_t state = 128;  ///< width of the keys and queries, which all heads share
  std::int64_t expand = 2;   ///< width of all heads' values, in d_model
  std::int64_t width(std::int64_t d_model) const { return expand * d_model; }
  void fields(core::FieldList& f);
};

/// Options of mixers that several architectures share.
struct MixerOptions {
  std::string list = "delta,delta,delta,window";  ///< hybrid: layer i has mixer i % size
  std::int64_t window = 256;                      ///< window: tokens that a token attends to
  std::int64_t state = 16;                        ///< mamba, s4d, h3: numbers of a channel's state
  std::int64_t filter = 1024;                     ///< hyena: length of the filters, in tokens
  void fields(core::FieldList& f);
};

struct MosaicOptions {
  std::int64_t persistent_slots = 0;  ///< for each head; 0: 3.5 d_model
  bool scale_output = true;           ///< multiplies f by 1 / sqrt(d_model)
  void fields(core::FieldList& f);
};

struct Mosaic2Options {
  std::int64_t short_term = 256;  ///< number of newest pairs in the short-term memory
  std::int64_t delay = 64;        ///< distance from the query to the newest pair of the long-term
                                  ///< memory
  std::int64_t most_delay = 256;  ///< upper limit of the delay, which training draws from `delay`
                                  ///< to this
  void fields(core::FieldList& f);
};

/// Options of the layer memory that transformer-xl and srupp carry from call to call.
struct LayerMemoryOptions {
  std::string layer_memory = "512";  ///< past inputs kept by each layer; see parse_layer_memory()
  std::string same_length = "off";   ///< "on": limits every position to the length of the layer's
                                     ///< memory
  void fields(core::FieldList& f);
};

struct TransformerXlOptions {
  std::int64_t clamp_length = 0;  ///< limit of relative distances; 0: none
  bool shared_biases = true;      ///< all layers share one content bias and one position bias
  void fields(core::FieldList& f);
};

struct SruppOptions {
  std::int64_t d_projection = 0;     ///< width of the attention; 0: d_model / 4
  std::int64_t attention_every = 1;  ///< every k-th layer attends; 0: none
  std::int64_t attention_last = 0;   ///< only the last n layers attend; 0: as attention_every says
  double forget_bias = 0, highway_bias = -2;
  void fields(core::FieldList& f);
};

/// All options. To add an architecture, add its struct and its line here, and its constructor in
/// arch/model.cpp.
struct ModelOptions {
  std::string arch = "transformer";
  ShapeOptions shape;
  VocabularyOptions vocabulary;
  TransformerOptions transformer;
  MemoryLayerOptions memory_layer;
  LstmOptions lstm;
  GlaOptions gla;
  StateMemoryOptions state_memory;
  Mamba2Options mamba2;
  MixerOptions mixers;
  MosaicOptions mosaic;
  Mosaic2Options mosaic2;
  LayerMemoryOptions layer_memory;
  TransformerXlOptions transformer_xl;
  SruppOptions srupp;
  /// Returns the name of each layer's mixer: those of --mixer in turn, or the architecture's; empty
  /// if --mixer names none.
  std::vector<std::string> layer_mixers() const;
  /// Each layer is attention and one feed-forward network.
  bool plain_layers() const { return !memory_layer.any() && !transformer.experts.any(); }
  void fields(core::FieldList& f);
};

}  // namespace nn
