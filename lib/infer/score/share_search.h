#pragma once
// Shares at every choice of temperatures, thetas and nprobes: of a list, or the best of all.

#include <cstdint>
#include <memory>
#include <vector>

#include "infer/memory/stream_memory.h"

namespace infer {

/// A choice with its shares and its loss, nats a token.
struct TunePoint {
  std::int64_t nprobe;
  double temperature, theta, store_temperature;
  double memory_lambda, cache_lambda, store_lambda;
  double loss;
  std::vector<double> with_lambdas;  ///< of the further models
};

/// Is given a text piece by piece, scored on a grid.
class ShareSearch {
 public:
  virtual ~ShareSearch() = default;
  virtual void add(const Parts& parts) = 0;
  /// Once all is there: in the order of the grid, nprobe first, then temperature, theta and the
  /// stores' temperature; and of each the shares that were looked at.
  virtual std::vector<TunePoint> points(std::uint64_t tokens) = 0;
  /// After that: the shares of n-grams at a point, one a bucket.
  virtual std::vector<double> ngram_lambdas(std::size_t point) const = 0;
};

/// Every combination of `lambdas` that leaves p_joint something, those that `memory` uses; of
/// n-grams at each the best of `lambdas` for each bucket. Sums are kept, no scores. Throws
/// Error{usage} where there are too many.
std::unique_ptr<ShareSearch> search_lambdas(const MemoryPlan& memory, const MemoryGrid& grid,
                                            const std::vector<double>& lambdas);

/// The best shares of each choice (share_fit.h), to six digits: a signature quotes them. Scores are
/// kept, of a text for which `most_bytes` are too few those of every second, fourth ... token.
std::unique_ptr<ShareSearch> search_all_shares(const MemoryPlan& memory, const MemoryGrid& grid,
                                               std::int64_t most_bytes = std::int64_t{1} << 30);

}  // namespace infer
