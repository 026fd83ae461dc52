#pragma once
// What each family's class in transformers (5.24) computes: the values that it fills in for absent
// keys of config.json, and the keys that it ignores; and where its files have each weight. A folder
// is read by these rows. A model is written as a family only if its config.json, read by them,
// gives the model back: see unlike().

#include "core/json.h"

namespace model {

/// families.json: a ClassRow for each "model_type", without the members that have their default. A
/// row with "like" begins as that row; null is the default again.
extern const std::string_view kFamilies;

/// Which angles a class computes from the rotary keys.
enum class Angles {
  none,     ///< the class has no rotary positions
  whole,    ///< of the whole head: partial_rotary_factor is ignored
  partial,  ///< of partial_rotary_factor of the head
  by_kind,  ///< of the whole head, and others in layers with a window
};

/// Which layers have the window "sliding_window".
enum class Windows {
  none,      ///< none
  every,     ///< every layer; with "layer_types" in `computes`: those that it names
  switched,  ///< with use_sliding_window: "layer_types", else those from max_window_layers on
  unturned,  ///< with use_sliding_window: "layer_types", else those without rotary positions
  periodic,  ///< "layer_types", else all but each `period`-th
};

/// Layout of a weight's rows in a tensor of the file.
enum class Layout {
  as_is,
  transposed,  ///< (in, out), as in GPT-2's Conv1D; biases are unchanged
  by_head,     ///< (heads, 3, width) for a weight (3, heads, width): GPT-NeoX
  after_two,   ///< after two unused rows: OPT's positions
  taps,        ///< (width, 1, taps) for a convolution's weight (width, taps)
  by_part,  ///< (parts, rows, ...) for a weight (parts rows, ...): a part an expert, or a channel
};

struct ClassRow {
  std::string type;          ///< "model_type"
  std::string architecture;  ///< the class; element of "architectures"
  std::string arch = "transformer";
  std::int64_t context = 2048;  ///< max_position_embeddings
  std::int64_t kv_heads = 0;    ///< num_key_value_heads; 0: num_attention_heads
  std::int64_t d_head = 0;      ///< head_dim; 0: hidden_size / num_attention_heads
  bool fixed_head = false;      ///< the class computes with no other head_dim
  bool divided = false;         ///< the class requires that the heads divide hidden_size
  double epsilon = 1e-6;
  bool tied = false;
  std::string width_key = "intermediate_size";  ///< of the feed-forward networks
  std::string activation_key = "hidden_act", activation = "silu";
  Angles angles = Angles::whole;
  double theta = 1e4, local_theta = 0, share = 1;
  std::string theta_key = "rope_theta";  ///< beside rope_scaling and rope_parameters
  std::string local_key;                 ///< empty: none
  std::string share_key = "partial_rotary_factor";
  std::int64_t trained = 0;  ///< original_max_position_embeddings; 0: rope_scaling's own
  bool only_longrope = false;
  Windows windows = Windows::none;
  std::int64_t window = 0;  ///< sliding_window; 0: none
  std::int64_t period = 0;
  /// Other names of keys, which go before the keys ("attribute_map" of the class).
  std::map<std::string, std::string> aliases;
  /// Those keys of ignored_keys() that the class computes or the reader refuses.
  std::vector<std::string> computes;
  bool has(std::string_view key) const;

  std::string base;  ///< prefix of all names of tensors except the head's; "model."
  /// A module or parameter of nn::Model, and the file's modules with its weight and bias, rows in
  /// this order: one; two halves; or queries, keys and values, as Llama's q_proj, k_proj and v_proj
  /// for c_attn. "N" represents the layer's number, "E" that of an expert: the rows of one expert
  /// follow those of another, each in this order.
  std::map<std::string, std::vector<std::string>> modules;
  std::map<std::string, Layout> layouts;  ///< of modules that are not as_is
  /// For experts: the tensor that holds all experts' weights of a module in files that transformers
  /// 5 writes with save_original_format=False.
  std::map<std::string, std::string> stacked;
  /// Suffixes of names of tensors that are no weights; prefixes, if they end in a dot.
  std::vector<std::string> buffers;
};

/// Returns the row of a family. Throws Error{bug} for another name.
const ClassRow& class_row(std::string_view type);

/// Returns the keys of a config.json that would change another class's function and that this class
/// ignores, such as "\"mlp_bias\": true".
std::vector<std::string> ignored_keys(const ClassRow& row, const core::Json& config);

}  // namespace model
