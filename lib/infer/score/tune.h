#pragma once
// Temperatures, thetas and shares chosen on a validation text, in one pass of the model; another
// where the best is at an edge of what was tried.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/score/samples.h"
#include "infer/score/scorer.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// What to choose on, and the points to try. Where none are given of an axis: PlanAxis::steps; of
/// shares none, but the best of all.
struct TuneOptions {
  std::string data;    ///< the validation shard; empty: nothing is tuned
  std::string output;  ///< a file for what was chosen, as options; empty: none
  std::vector<double> lambdas;
  std::map<std::string, std::vector<double>> points;       ///< by the axis's name
  std::map<std::string, std::vector<std::int64_t>> whole;  ///< the same of whole numbers
  void fields(core::FieldList& f);

  /// The points given of an axis; empty: none.
  std::vector<double> of(const std::string& axis) const;
  /// With no `files` to score afterwards, what was chosen is all the output.
  bool alone(const std::vector<std::string>& files) const { return !data.empty() && files.empty(); }
  /// `files`: what is scored afterwards. Throws Error{usage} for what contradicts itself.
  void check(const std::vector<std::string>& files) const;
};

/// Passes at most: where the best of points that were not given is at an edge, those beyond are
/// tried, as long as that gains 1e-4 nats a token.
inline constexpr int kTuneTurns = 4;

struct Tuned {
  MemoryPlan memory;              ///< with the best values and tuned_on
  TunePoint best;                 ///< the first of the best
  std::vector<TunePoint> points;  ///< all of the pass that had it, in the order of its grid
  std::vector<std::string> axes;  ///< names of the values of a point
  std::size_t tried = 0;          ///< points of all passes
  Totals totals;                  ///< at the best point, with gates where there are any
  /// Nats a token that gates were fitted on: with the best constants, and with gates.
  std::optional<std::pair<double, double>> gates;
  /// "--tune-thetas 8": values that are the least or the most of several tried, so that a better
  /// one may lie beyond; but for shares of 0.
  std::vector<std::string> edges;

  /// A point's value of an axis; the plan's own where it is none of the grid's.
  double value(const TunePoint& point, const std::string& axis) const;
  /// A plan at a point.
  MemoryPlan at(const TunePoint& point, MemoryPlan plan) const;
  /// "perplexity 87.1, the best of 13 points", and the edges. Figures are those without a threshold
  /// of searches, which is said where there is one.
  std::string summary() const;
};

/// Every combination of the numbers that the sources of `memory` can have tuned; with each of them
/// the weights: the best, or every combination of options.lambdas (samples.h). The model goes over
/// the data once and stores are searched once for each nprobe; both again, with points beyond,
/// while the best of points that options leaves open is at their edge (kTuneTurns). Throws
/// Error{usage} if `memory` has nothing to tune, and as score().
Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
           const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress = {});

}  // namespace infer
