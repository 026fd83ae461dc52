#pragma once
// Computes from a model's options how much state it carries from call to call.

#include "nn/base/model_options.h"

namespace nn {

/// Number of elements carried for one stream: `fixed` for recurrent state and full layer memories,
/// `per_token` for keys and values of each past token. Layer memories count as the layers' inputs,
/// as in the papers (Rae and Razavi 2020, section 1); evaluation may store keys and values instead.
struct CarriedState {
  std::int64_t fixed = 0, per_token = 0;
  std::int64_t most_tokens = 0;  ///< learned positions: maximum length of a stream; 0: no limit

  /// Returns the bytes after `tokens` tokens, with `number_bytes` for each element.
  std::int64_t bytes(std::int64_t tokens, std::int64_t number_bytes = 4) const {
    return number_bytes * (fixed + per_token * tokens);
  }
};

/// Returns the carried state; for an encoder-decoder, that of the decoder without the source's keys
/// and values. Throws Error{bad_config} as the architecture's constructor.
CarriedState carried_state(const ModelOptions& options);

}  // namespace nn
