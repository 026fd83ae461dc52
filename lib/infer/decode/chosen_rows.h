#pragma once
// Applies a selection of rows to per-row data.

#include <cstdint>
#include <vector>

namespace infer {

/// Returns all[rows[0]], all[rows[1]], ...
template <class T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<std::int64_t>& rows) {
  std::vector<T> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back(all[static_cast<std::size_t>(row)]);
  return out;
}

}  // namespace infer
