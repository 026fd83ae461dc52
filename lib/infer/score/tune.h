#pragma once
// Temperatures, thetas and shares chosen on a validation text, in one pass of the model; another
// where the best is at an edge of what was tried.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/memory/memory_plan.h"
#include "infer/score/scorer.h"
#include "infer/score/share_search.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// What to choose on, and the points to try. Empty points: the defaults: kTemperatureSteps times
/// the temperature before tuning, kThetaSteps times 1 / sqrt(d_model), kStoreTemperatureSteps times
/// the stores' temperature before tuning and 1 (Khandelwal et al. 2020), the stores' nprobe; of
/// shares none, but the best of all.
struct TuneOptions {
  std::string data;    ///< the validation shard; empty: nothing is tuned
  std::string output;  ///< a file for what was chosen, as options; empty: none
  std::vector<double> temperatures, thetas, lambdas, store_temperatures;
  std::vector<std::int64_t> nprobes;
  void fields(core::FieldList& f);

  /// With no `files` to score afterwards, what was chosen is all the output.
  bool alone(const std::vector<std::string>& files) const { return !data.empty() && files.empty(); }
  /// `files`: what is scored afterwards. Throws Error{usage} for what contradicts itself.
  void check(const std::vector<std::string>& files) const;
};

inline const std::vector<double> kTemperatureSteps = {0.5,  0.7, 0.8,  0.9, 1,   1.1, 1.2,
                                                      1.35, 1.5, 1.75, 2,   2.5, 3};
inline const std::vector<double> kThetaSteps = {0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 8};
inline const std::vector<double> kStoreTemperatureSteps = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.35,
                                                           0.5,    0.7,   1,    1.5, 2,   4};
/// Passes at most: where the best of points that were not given is at an edge, those beyond are
/// tried, as long as that gains 1e-4 nats a token.
inline constexpr int kTuneTurns = 4;

struct Tuned {
  MemoryPlan memory;              ///< with the best values and tuned_on
  TunePoint best;                 ///< the first of the best
  std::vector<TunePoint> points;  ///< all of the pass that had it, in the order of its grid
  std::size_t tried = 0;          ///< points of all passes
  Totals totals;                  ///< at the best point, with gates where there are any
  /// Nats a token that gates were fitted on: with the best constants, and with gates.
  std::optional<std::pair<double, double>> gates;
  /// "--tune-thetas 8": values that are the least or the most of several tried, so that a better
  /// one may lie beyond; but for shares of 0.
  std::vector<std::string> edges;

  /// "perplexity 87.1, the best of 13 points", and the edges. Figures are those without a threshold
  /// of searches, which is said where there is one.
  std::string summary() const;
};

/// Every combination of what `memory` uses: the temperature of what is joined, theta, the stores'
/// temperature and nprobe; with each of them the shares of what is interpolated, of further models
/// and, for each bucket, of n-grams: the best, or every combination of options.lambdas
/// (share_search.h). The model goes over the data once and the stores are searched once for each
/// nprobe; both again, with points beyond, while the best of points that options leaves open is at
/// their edge (kTuneTurns). Throws Error{usage} if `memory` has nothing to tune, and as score().
Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
           const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress = {});

}  // namespace infer
