#pragma once
// What the entries of a store are worth to its model, measured on a piece of the store's own text.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "infer/keys/entries.h"
#include "infer/stores/neighbours.h"
#include "infer/stores/stores.h"
#include "nn/base/torch.h"
#include "store/manifest.h"

namespace infer {

/// The piece is kPieces stretches, evenly spread, of kPieceTokens tokens together; of a walk that
/// carries a State, the beginnings of streams. Each token is searched for once, and what stands
/// within kHiddenAround tokens of it is left out of what was found. A store with fewer rows than
/// kLeastCalibrated is not calibrated: too little would be left.
inline constexpr std::int64_t kPieces = 4, kPieceTokens = 2048, kHiddenAround = 2048;
inline constexpr std::uint64_t kLeastCalibrated = 16'384;
/// Of the weight and of the mean share of the softmax: on its own text a model is surer than on
/// another, so that a store is never found worth nothing.
inline constexpr double kLeastWorth = 0.02, kMostWorth = 0.9;

/// What the model alone gives R tokens, and what was found for them.
struct CalibrationPiece {
  Neighbours found;
  torch::Tensor labels;           ///< (R) int64
  torch::Tensor log_prob, log_z;  ///< (R) float64: log p of the label; what normalises the softmax
};
/// The numbers under which the piece is most probable, among temperatures from 1/8 to 16 times
/// `unit` in the softmax, where scores are divided by `root_width` too, and from 1/80 to 4 times
/// root_width in a distribution of their own. To four digits.
store::Calibration calibrate(const CalibrationPiece& piece, double root_width, double unit);

/// A walk over the text that a store's last rows are of, from its first entry on.
using MakeWalk = std::function<std::unique_ptr<EntryWalk>()>;
/// The piece of a store that is open alone. Rows from `first_row` on are of the walk's entries; of
/// a store that leaves positions out `places` says which. None: the store is too small. Throws as
/// searching and walking do.
std::optional<CalibrationPiece> calibration_piece(const Stores& store, std::int64_t first_row,
                                                  std::span<const std::int64_t> places,
                                                  const MakeWalk& make_walk);

}  // namespace infer
