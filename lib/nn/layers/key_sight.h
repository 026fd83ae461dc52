#pragma once
// Which keys a query sees where a layer remembers past inputs.

#include "nn/base/torch.h"

namespace nn {

/// Which of the S keys the last T, the queries, see. Query i stands at slot S - T + i, and sees
/// itself and the slots before it, but none before either bound. Its own slot is always seen.
struct KeySight {
  torch::Tensor first;       ///< (B) int64: the row's first slot; undefined: 0
  std::int64_t before = -1;  ///< most slots before its own; -1: no bound

  /// Nothing is hidden but what comes later.
  bool causal_only() const { return !first.defined() && before < 0; }
  /// True where query i must not see slot j: (B or 1, 1, T, S) bool, made where it is needed.
  torch::Tensor hidden(std::int64_t queries, std::int64_t slots, torch::Device device) const;
};

/// --same-length: "on" or "off". Throws Error{bad_config}.
bool parse_same_length(const std::string& text);

}  // namespace nn
