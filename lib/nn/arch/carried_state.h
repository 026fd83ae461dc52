#pragma once
// How much of a text a model carries from call to call, told by its options alone.

#include <cstdint>

#include "nn/base/model_options.h"

namespace nn {

/// Numbers of one stream: recurrent state and the memories of layers, which do not grow (`fixed`,
/// once they are full), and keys and values of each token of the past (`per_token`). Layer memories
/// are counted as what layers read, as the papers count them (Rae and Razavi 2020, section 1);
/// evaluation may keep what it makes of them, keys and values.
struct CarriedState {
  std::int64_t fixed = 0, per_token = 0;
  std::int64_t most_tokens = 0;  ///< learned positions: that a stream can have; 0: no bound

  /// After so many tokens, of `number_bytes` each.
  std::int64_t bytes(std::int64_t tokens, std::int64_t number_bytes = 4) const {
    return number_bytes * (fixed + per_token * tokens);
  }
};

/// Of an encoder-decoder its decoder's own past, without what it keeps of the source. Throws
/// Error{bad_config} as the architecture's maker.
CarriedState carried_state(const ModelOptions& options);

}  // namespace nn
