#pragma once
// Visibility of keys in layers that store past inputs.

#include "nn/base/torch.h"

namespace nn {

/// Keys visible to the queries, which are the last T of the S slots. Query i has slot S - T + i and
/// sees itself and earlier slots within both bounds. Its own slot is always visible.
struct KeyVisibility {
  torch::Tensor first;       ///< (B) int64: first visible slot of the row; undefined: 0
  std::int64_t before = -1;  ///< maximum number of slots before its own; -1: unlimited

  /// Returns whether only later slots are hidden.
  bool causal_only() const { return !first.defined() && before < 0; }
  /// Returns (B or 1, 1, T, S) bool on `device`: true if query i must not see slot j.
  torch::Tensor hidden(std::int64_t queries, std::int64_t slots, torch::Device device) const;
};

/// Parses --same-length: "on" or "off". Throws Error{bad_config}.
bool parse_same_length(const std::string& text);

}  // namespace nn
