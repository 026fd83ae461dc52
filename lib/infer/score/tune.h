#pragma once
// Tunes temperatures, thetas and weights on a validation text in one pass of the model; repeats the
// pass if the optimum lies on the edge of the grid.

#include "infer/score/samples.h"
#include "infer/score/scorer.h"

namespace infer {

/// Options of tuning. Axes without given points use PlanAxis::steps; weights without given points
/// are optimised.
struct TuneOptions {
  std::string data;    ///< validation shard; empty: no tuning
  std::string output;  ///< output file for the chosen options; empty: none
  std::vector<double> lambdas;
  std::map<std::string, std::vector<double>> points;       ///< by name of the axis
  std::map<std::string, std::vector<std::int64_t>> whole;  ///< by name of the axis, for integers
  void fields(core::FieldList& f);

  /// Returns the given points of an axis; empty: none.
  std::vector<double> of(const std::string& axis) const;
  /// Returns whether tuning is the only task: no `files` are scored afterwards.
  bool alone(const std::vector<std::string>& files) const { return !data.empty() && files.empty(); }
  /// Throws Error{usage} for contradictory options. `files` are scored afterwards.
  void check(const std::vector<std::string>& files) const;
};

/// Maximum number of passes. While the optimum lies on the edge of default points, further points
/// are tried, as long as they gain 1e-4 nats a token.
inline constexpr int kTuneTurns = 4;

struct Tuned {
  MemoryPlan memory;              ///< with the best values and tuned_on
  TunePoint best;                 ///< first of the best points
  std::vector<TunePoint> points;  ///< all points of the best pass, in grid order
  std::vector<std::string> axes;  ///< names of the values of a point
  std::size_t tried = 0;          ///< number of points in all passes
  Totals totals;                  ///< at the best point, with gates if any
  /// Nats a token on the fitting data with the best constants and with gates.
  std::optional<std::pair<double, double>> gates;
  /// Values at the end of their tried range, such as "--tune-thetas 8", so that a better one may
  /// lie beyond; weights of 0 are not listed.
  std::vector<std::string> edges;

  /// Returns a point's value on an axis; the plan's value if the grid lacks the axis.
  double value(const TunePoint& point, const std::string& axis) const;
  /// Returns the plan with the values of a point.
  MemoryPlan at(const TunePoint& point, MemoryPlan plan) const;
  /// Returns a line such as "perplexity 87.1, the best of 13 points", and the edges. The numbers
  /// are without a search threshold; the line says so if there is one.
  std::string summary() const;
};

/// Tries every combination of the tunable parameters of `memory`, each with the best weights, or
/// with every combination of options.lambdas (samples.h). Reads the data once and searches the
/// datastores once for each nprobe. Repeats both with further points while the optimum lies on the
/// edge of default points (kTuneTurns). Throws Error{usage} if `memory` has no tunable parameters,
/// and the errors of score().
Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
    const std::function<void(std::uint64_t)>& progress = {});

}  // namespace infer
