#pragma once
// What datastores gave for some queries, and the mass it has.

#include <cstdint>
#include <span>

#include "nn/base/torch.h"

namespace infer {

/// What was found for R queries: (R, k) each, on the CPU, the best first. Where there are fewer:
/// score -infinity, label, row and store -1.
struct Neighbours {
  torch::Tensor scores;  ///< float32: q.k or -|q - k|^2, over no temperature
  torch::Tensor labels;  ///< int64
  torch::Tensor rows;    ///< int64, of their store
  torch::Tensor stores;  ///< int64: which store
  /// float32: log of how many entries each stands for, which is added to its score over a
  /// temperature; undefined: all stand for themselves.
  torch::Tensor log_weights = {};

  std::int64_t size() const { return scores.defined() ? scores.size(0) : 0; }
  /// Scores over a divisor, with the weights.
  torch::Tensor logits(double divisor) const;
  Neighbours slice(std::int64_t begin, std::int64_t end) const;
  /// Its rows of an index (n) int64.
  Neighbours select(const torch::Tensor& rows) const;
  /// (R) int64: where the first entry with the label targets[i] stands, from 0; k if nowhere.
  torch::Tensor rank_of(const torch::Tensor& targets) const;
};

/// (rows, k) of nothing found; and some rows of it, an index (R) int64, filled.
Neighbours no_neighbours(std::int64_t rows, std::int64_t k);
void put_neighbours(Neighbours& to, const torch::Tensor& rows, const Neighbours& from);

/// Log-masses of R targets at several divisors of the scores, float64: (divisors, R) of all entries
/// found and of those whose label is the target; kUnseen where there is none.
struct StoreMasses {
  torch::Tensor all, positive;
};
StoreMasses store_masses(const Neighbours& found, const torch::Tensor& targets,
                         std::span<const double> divisors);
/// Log-mass of every word, (R, vocabulary) float32, kUnseen where no entry found has the label.
torch::Tensor store_word_masses(const Neighbours& found, double divisor, std::int64_t vocabulary);

/// An entry of several stores.
struct StoreRow {
  std::int64_t store, row;
};

/// What one entry of a store gave of p(token): a share of it.
struct StoreShare {
  std::int64_t store, row;
  double share;
};

}  // namespace infer
