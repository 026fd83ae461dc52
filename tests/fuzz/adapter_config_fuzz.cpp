// Any adapter_config.json gives rules of an adapter or an Error.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "model/adapter.h"
#include "nn/base/torch.h"

FUZZ_TARGET(adapter_config)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const model::AdapterRules rules(text, "config");
    for (const char* module : {"model.layers.0.self_attn.q_proj", "transformer.h.11.mlp.c_fc",
             "lm_head", "model.embed_tokens", ""}) {
      if (rules.targets(module, true) && !rules.says_targets()) std::abort();
      if (rules.rank(module) < 1 || std::isnan(rules.scale(module))) std::abort();
    }
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::bad_config)
      std::abort();
  }
}
