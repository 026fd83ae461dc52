#pragma once
// Visibility as in the papers, case by case, for comparison with nn::sees.

#include <cstdint>

#include "nn/kernels/visibility_rule.h"

namespace plain {

inline bool sees(const nn::VisibilityRule& rule, const nn::TokenPosition& query,
    const nn::TokenPosition& entry) {
  if (query.run < 0 || entry.run < 0) return false;
  if (query.run != entry.run) return rule.ext;
  if (entry.position >= query.position) return false;
  const bool own_segment = query.segment == entry.segment;
  if (own_segment && rule.drop_own_segment) return false;
  if (rule.local && own_segment) return true;
  return rule.far && (rule.reach == 0 || query.position - entry.position <= rule.reach);
}

}  // namespace plain
