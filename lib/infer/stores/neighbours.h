#pragma once
// Neighbours retrieved from datastores for queries, and their probability mass.

#include "nn/memory/memory_block.h"

namespace infer {

using torch::Tensor;

/// Neighbours of R queries: (R, k) each, on the CPU, best first. Missing neighbours have score
/// -infinity and label, row and store -1.
struct Neighbours {
  torch::Tensor scores;  ///< float32: q.k or -|q - k|^2, without temperature
  torch::Tensor labels;  ///< int64
  torch::Tensor rows;    ///< int64, in their store
  torch::Tensor stores;  ///< int64: index of the store
  /// float32: log of the number of positions an entry represents, added to its score after division
  /// by the temperature; undefined: one each.
  torch::Tensor log_weights = {};

  std::int64_t size() const { return scores.defined() ? scores.size(0) : 0; }
  /// Returns the scores divided by `divisor`, plus the log-weights.
  torch::Tensor logits(double divisor) const;
  /// Applies `take` to each tensor.
  template <class Take> Neighbours taken(const Take& take) const {
    return {take(scores), take(labels), take(rows), take(stores),
        log_weights.defined() ? take(log_weights) : log_weights};
  }
  Neighbours slice(std::int64_t begin, std::int64_t end) const;
  /// Selects rows by an index (n) int64.
  Neighbours select(const torch::Tensor& rows) const;
  /// Returns the k best of each row, best first. Ties keep their order.
  Neighbours best(std::int64_t k) const;
  /// Returns (R) int64: the 0-based rank of the first neighbour labelled targets[i]; k if none.
  torch::Tensor rank_of(const torch::Tensor& targets) const;
};

/// no_neighbours() returns (rows, k) empty results; put_neighbours() writes `from` to the rows (R)
/// int64 of `to`.
Neighbours no_neighbours(std::int64_t rows, std::int64_t k);
void put_neighbours(Neighbours& to, const torch::Tensor& rows, const Neighbours& from);

/// Returns the log-masses of R targets at several divisors of the scores, float64, (divisors, R).
nn::Masses store_masses(
    const Neighbours& found, const torch::Tensor& targets, std::span<const double> divisors);
/// Returns the log-mass of every token, (R, vocabulary) float32, kUnseen if no neighbour has the
/// label.
torch::Tensor store_token_masses(const Neighbours& found, double divisor, std::int64_t vocabulary);

/// An entry of one of several stores.
struct StoreRow {
  std::int64_t store, row;
};

/// Contribution of a store's entry to p(token), as a fraction.
struct StoreShare {
  std::int64_t store, row;
  double share;
};

}  // namespace infer
