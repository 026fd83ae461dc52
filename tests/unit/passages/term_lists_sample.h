#pragma once
// Makes term lists for the tests.

#include "core/rng.h"
#include "passages/bm25_index.h"

namespace sample {

using Lists = std::vector<std::vector<passages::TermCount>>;

inline passages::TermLists term_lists(
    const Lists& lists, std::uint64_t memory = std::uint64_t{1} << 40) {
  passages::TermLists out(memory);
  for (auto list : lists) out.add(list);
  out.finish();
  return out;
}

/// Returns `units` of up to `longest` terms; low term numbers are frequent, as in text.
inline Lists random_lists(
    std::uint32_t units, std::uint32_t terms, std::uint32_t longest, std::uint64_t seed) {
  core::Rng rng(seed);
  Lists lists(units);
  for (auto& list : lists) {
    std::vector<std::uint32_t> counts(terms);
    for (std::uint64_t n = rng.below(longest + 1); n > 0; --n)
      ++counts[static_cast<std::size_t>(terms * rng.uniform() * rng.uniform() * rng.uniform())];
    for (std::uint32_t term = 0; term < terms; ++term)
      if (counts[term] > 0) list.push_back({term, counts[term]});
  }
  return lists;
}

}  // namespace sample
