#pragma once
// Common part of Llama's and Gemma's families: RMS norms, rotary embeddings, gated MLPs,
// grouped-query attention.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/families/config_keys.h"
#include "model/families/family.h"

namespace model {

/// Defaults of absent keys.
struct GatedDefaults {
  std::int64_t context = 2048;
  std::int64_t d_head = 0;  ///< 0: hidden_size / num_attention_heads
  double epsilon = 1e-6;
  bool tied = false;
  const char* width_key = "intermediate_size";  ///< of the feed-forward networks
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
};

nn::ModelOptions gated_options(const ConfigKeys& keys, const GatedDefaults& defaults);
void put_gated(const nn::ModelOptions& options, core::OrderedJson& config,
               const GatedDefaults& defaults = {});

/// Selects biases of these kinds only.
void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds);

/// Returns the locations of the weights; `norm1` and `norm2` are the names of ln_1 and ln_2.
std::vector<ModuleNames> gated_modules(std::string_view norm1, std::string_view norm2);

Family gated_family(std::string_view type, std::string_view architecture,
                    nn::ModelOptions (*options)(const ConfigKeys&),
                    void (*keys)(const nn::ModelOptions&, core::OrderedJson&));

}  // namespace model
