#pragma once
// What each source gave of each token, kept while a text is walked over, and the best weights on
// it.

#include <cstdint>
#include <vector>

#include "infer/memory/parts.h"
#include "infer/score/gate_fit.h"
#include "infer/sources/grid.h"

namespace infer {

/// Tokens in float64. Of a text with more than are kept it keeps every second, fourth, eighth ...,
/// so that memory stays bounded.
class Samples {
 public:
  explicit Samples(std::int64_t most_bytes = std::int64_t{1} << 30) : most_bytes_(most_bytes) {}

  void add(Parts parts);
  std::int64_t size() const { return kept_; }
  /// All that was kept, as the parts of one text.
  Parts parts() const;

 private:
  void thin();

  std::int64_t most_bytes_, kept_ = 0;
  Parts shape_;  // the last parts, for what they have
  struct Column {
    std::int64_t width = 0;
    std::vector<double> values = {};  // a token's beside each other
  };
  std::vector<Column> columns_;  // of Parts::members()
  std::int64_t stride_ = 1, seen_ = 0;
};

/// A point of the grid with its weights and its loss, nats a token.
struct TunePoint {
  std::vector<double> values;                ///< of the grid's axes
  std::vector<std::size_t> places;           ///< of these in the axes
  std::vector<std::vector<double>> weights;  ///< of MemoryPlan::weights()
  double loss = 0;
};

/// The places of points in the axes of a grid.
using Places = std::vector<std::vector<std::size_t>>;

/// The best weights at each of these points (share_fit.h), to six digits: a signature quotes them.
/// No `places`: at each point of the grid.
std::vector<TunePoint> fit_points(const Parts& parts, const MemoryPlan& memory, const Grid& grid,
                                  const Places& places = {});
/// At each of these points every combination of `lambdas` that leaves the joint softmax something; by bucket
/// the best of them for each bucket. Throws Error{usage} where there are too many.
std::vector<TunePoint> try_points(const Parts& parts, const MemoryPlan& memory, const Grid& grid,
                                  const std::vector<double>& lambdas, const Places& places = {});

/// The gates of `plan`, whose weights are the best constants, fitted on `parts` at a point; and its
/// nats a token with those constants and with the gates.
struct GatesFitted {
  Gate gate;
  double constant_loss = 0, loss = 0;
};
GatesFitted fit_gates(const Parts& parts, const MemoryPlan& plan,
                      const std::vector<std::size_t>& places = {});

}  // namespace infer
