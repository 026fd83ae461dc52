#include "passages/bm25.h"

namespace passages {

void TermLists::add(std::vector<TermCount>& terms) {
  if (length_.size() == std::size_t{1} << 31)
    core::bad_data("more than {} units; use longer segments, or parts of the data", length_.size());
  std::ranges::sort(terms, {}, &TermCount::term);
  std::uint32_t length = 0;
  for (const auto& [term, count] : terms) {
    if (term >= units_with_.size()) units_with_.resize(std::size_t{term} + 1);
    ++units_with_[term];
    length += count;
  }
  lists_.append(terms);
  begin_.push_back(lists_.size());
  length_.push_back(length);
  total_ += length;
}

Bm25::Bm25(const TermLists& lists, const Bm25Options& options)
    : lists_(lists), base_(options.k1 * (1 - options.b)),
      per_term_(lists.average_length() > 0 ? options.k1 * options.b / lists.average_length() : 0) {
  idf_.reserve(lists.terms());
  for (std::uint32_t term = 0; term < lists.terms(); ++term) {
    const double with = lists.units_with(term);
    idf_.push_back(static_cast<float>(std::log1p((lists.size() - with + 0.5) / (with + 0.5))));
  }
}

double Bm25::score(std::uint32_t query, std::uint32_t unit) const {
  const auto terms = lists_.list(query), others = lists_.list(unit);
  const float unit_norm = norm(unit);
  double sum = 0;
  for (auto t = terms.begin(), o = others.begin(); t != terms.end() && o != others.end();) {
    if (t->term == o->term) {
      sum += static_cast<double>(idf(t->term)) * t->count * impact(o->count, unit_norm);
      ++t;
      ++o;
    } else if (t->term < o->term) {
      ++t;
    } else {
      ++o;
    }
  }
  return sum;
}

void Hits::set(std::uint32_t query, std::span<const Hit> best) {
  std::ranges::copy(best, hits_.begin() + static_cast<std::ptrdiff_t>(std::size_t{query} * top_));
  count_[query] = static_cast<std::uint32_t>(best.size());
}

}  // namespace passages
