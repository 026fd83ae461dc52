#pragma once
// Collects the scores of each source while a text is scored, and fits the weights to them.

#include "infer/memory/stream_memory.h"
#include "infer/score/share_fit.h"

namespace infer {

/// Token scores in float64. For long texts it keeps every second, fourth, eighth, ... token, so
/// that memory is bounded.
class Samples {
 public:
  explicit Samples(std::int64_t most_bytes = std::int64_t{1} << 30) : most_bytes_(most_bytes) {}

  void add(Parts parts);
  std::int64_t size() const { return kept_; }
  /// Returns all kept tokens as the parts of one text.
  Parts parts() const;

 private:
  void thin();

  std::int64_t most_bytes_, kept_ = 0;
  Parts shape_;  // the last parts, as a template for their members
  struct Column {
    std::int64_t width = 0;
    std::vector<double> values = {};  // values of consecutive tokens
  };
  std::vector<Column> columns_;  // for Parts::members()
  std::int64_t stride_ = 1, seen_ = 0;
};

/// A point of the grid with its weights and its loss in nats a token.
struct TunePoint {
  std::vector<double> values;                ///< on the grid's axes
  std::vector<std::size_t> places;           ///< indices of the values in the axes
  std::vector<std::vector<double>> weights;  ///< for MemoryPlan::weights()
  double loss = 0;
};

/// Indices of points in the axes of a grid.
using GridPoints = std::vector<std::vector<std::size_t>>;

/// Fits the best weights at each of these points (share_fit.h), to six digits because signatures
/// quote them.
std::vector<TunePoint> fit_points(
    const Parts& parts, const MemoryPlan& memory, const Grid& grid, const GridPoints& places);
/// Evaluates, at each of these points, every combination of `lambdas` that leaves weight for the
/// joint softmax; for each source with buckets in turn, takes the best value for each
/// bucket. Throws
/// Error{usage} if there are too many combinations.
std::vector<TunePoint> try_points(const Parts& parts, const MemoryPlan& memory, const Grid& grid,
    const std::vector<double>& lambdas, const GridPoints& places);

/// Gates fitted on `parts` at a point, for a `plan` whose weights are the best constants; and the
/// nats a token with the constants and with the gates.
struct GatesFitted {
  Gate gate;
  double constant_loss = 0, loss = 0;
};
GatesFitted fit_gates(
    const Parts& parts, const MemoryPlan& plan, const std::vector<std::size_t>& places = {});

}  // namespace infer
