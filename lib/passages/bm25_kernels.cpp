#include "passages/bm25_kernels.h"

#include <algorithm>

namespace passages {
namespace {

// 16 floats: one AVX-512 register, two of AVX2.
typedef float Lanes __attribute__((vector_size(64)));

Lanes broadcast(float value) { return value - Lanes{}; }

// Reduce by halves in a few instructions; reducing lane by lane would cost as much as four rows.
float highest_of(const Lanes& lanes) {
  typedef float Four __attribute__((vector_size(16), may_alias));
  const auto* part = reinterpret_cast<const Four*>(&lanes);
  const Four low = part[0] > part[1] ? part[0] : part[1],
             high = part[2] > part[3] ? part[2] : part[3], four = low > high ? low : high;
  return std::max(std::max(four[0], four[1]), std::max(four[2], four[3]));
}

}  // namespace

void add_postings(
    const std::uint16_t* units, const float* impacts, std::size_t n, float weight, float* scores) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < n; ++i) scores[units[i]] += weight * impacts[i];
}

float add_rows(const float* rows, std::span<const DenseTerm> terms, float* scores) {
  auto* out = reinterpret_cast<Lanes*>(scores);
  Lanes s0 = out[0], s1 = out[1], s2 = out[2], s3 = out[3];
  for (const auto& term : terms) {
    const auto* row = reinterpret_cast<const Lanes*>(rows + std::size_t{term.row} * kTile);
    const Lanes weight = broadcast(term.weight);
    s0 += weight * row[0];
    s1 += weight * row[1];
    s2 += weight * row[2];
    s3 += weight * row[3];
  }
  out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
  const Lanes m0 = s0 > s1 ? s0 : s1, m1 = s2 > s3 ? s2 : s3, m = m0 > m1 ? m0 : m1;
  return highest_of(m);
}

std::size_t places_from(const float* scores, float least, std::uint8_t* places) {
  std::size_t n = 0;
  for (std::size_t j = 0; j < kTile; ++j) {
    places[n] = static_cast<std::uint8_t>(j);  // branch-free, because the branch is unpredictable
    n += scores[j] >= least;
  }
  return n;
}

}  // namespace passages
