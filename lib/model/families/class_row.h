#pragma once
// What each family's class in transformers (5.24) computes: the values that it fills in for absent
// keys of config.json, and the keys that it ignores. A folder is read by these rows. A model is
// written as a family only if its config.json, read by them, gives the model back: see unlike().

#include "core/json.h"

namespace model {

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

struct ClassRow {
  std::string_view type;          ///< "model_type"
  std::string_view architecture;  ///< the class; element of "architectures"
  std::int64_t context = 2048;    ///< max_position_embeddings
  std::int64_t kv_heads = 0;      ///< num_key_value_heads; 0: num_attention_heads
  std::int64_t d_head = 0;        ///< head_dim; 0: hidden_size / num_attention_heads
  bool fixed_head = false;        ///< the class computes with no other head_dim
  bool divided = false;           ///< the class requires that the heads divide hidden_size
  double epsilon = 1e-6;
  bool tied = false;
  const char* width_key = "intermediate_size";  ///< of the feed-forward networks
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  Angles angles = Angles::whole;
  double theta = 1e4, local_theta = 0, share = 1;
  const char* theta_key = "rope_theta";  ///< beside rope_scaling and rope_parameters
  const char* local_key = nullptr;
  const char* share_key = "partial_rotary_factor";
  std::int64_t trained = 0;  ///< original_max_position_embeddings; 0: rope_scaling's own
  bool only_longrope = false;
  Windows windows = Windows::none;
  std::int64_t window = 0;  ///< sliding_window; 0: none
  std::int64_t period = 0;
  /// Other names of keys, which go before the keys ("attribute_map" of the class).
  std::vector<std::pair<const char*, const char*>> aliases = {};
  /// Those keys of ignored_keys() that the class computes or the reader refuses.
  std::vector<std::string_view> computes = {};
  bool has(std::string_view key) const;
};

/// Returns the row of a family. Throws Error{bug} for another name.
const ClassRow& class_row(std::string_view type);

/// Returns the keys of a config.json that would change another class's function and that this class
/// ignores, such as "\"mlp_bias\": true".
std::vector<std::string> ignored_keys(const ClassRow& row, const core::Json& config);

}  // namespace model
