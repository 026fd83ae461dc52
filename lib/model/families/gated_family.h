#pragma once
// What Llama's family and Gemma's have in common: RMS norms, rotary positions, gated feed-forward
// networks, heads of keys and values for several of queries.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/families/config_keys.h"
#include "model/families/family.h"

namespace model {

/// What keys mean where they are absent.
struct GatedDefaults {
  std::int64_t context = 2048;
  std::int64_t d_head = 0;  ///< 0: hidden_size / num_attention_heads
  double epsilon = 1e-6;
  bool tied = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
};

nn::ModelOptions gated_options(const ConfigKeys& keys, const GatedDefaults& defaults);
void put_gated(const nn::ModelOptions& options, core::OrderedJson& config,
               const GatedDefaults& defaults = {});

/// Biases of these kinds and no others.
void set_biases(nn::ModelOptions& options, std::vector<std::string> kinds);

/// Where the weights are; the names of the two norms of a layer that ln_1 and ln_2 are.
std::vector<ModuleNames> gated_modules(std::string_view norm1, std::string_view norm2);

Family gated_family(std::string_view type, std::string_view architecture,
                    nn::ModelOptions (*options)(const ConfigKeys&),
                    void (*keys)(const nn::ModelOptions&, core::OrderedJson&));

}  // namespace model
