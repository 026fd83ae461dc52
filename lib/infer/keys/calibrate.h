#pragma once
// Calibrates the interpolation weight and temperatures of a store on a piece of its own text.

#include "infer/keys/entries.h"
#include "infer/stores/stores.h"

namespace infer {

/// The piece consists of kPieces evenly spaced segments with kPieceTokens tokens in total; for a
/// walk that carries State, of the beginnings of streams. The calibration searches once for each
/// token and discards neighbours within kHiddenAround tokens of it. It skips stores with fewer than
/// kLeastCalibrated rows, which would leave too few neighbours.
inline constexpr std::int64_t kPieces = 4, kPieceTokens = 2048, kHiddenAround = 2048;
inline constexpr std::uint64_t kLeastCalibrated = 16'384;
/// Bounds of the weight and of the mean share of the softmax. A model is more confident on its own
/// text than on another, so the lower bound keeps every store in use.
inline constexpr double kLeastWorth = 0.02, kMostWorth = 0.9;

/// Model scores and neighbours of R tokens.
struct CalibrationPiece {
  Neighbours found;
  torch::Tensor labels;           ///< (R) int64
  torch::Tensor log_prob, log_z;  ///< (R) float64: log p of the label; log-normaliser of the
                                  ///< softmax
};
/// Returns the parameters that maximise the probability of the piece, to four digits. Candidate
/// temperatures in the softmax, where scores are also divided by `root_width`, are 1/8 to 16 times
/// `unit`; in the separate distribution, 1/80 to 4 times root_width.
store::Calibration calibrate(const CalibrationPiece& piece, double root_width, double unit);

/// Creates a walk over the text of a store's last rows, from its first entry.
using MakeWalk = std::function<std::unique_ptr<EntryWalk>()>;
/// Returns the piece of a store that is opened alone. Rows from `first_row` on are the walk's
/// entries; for a store that skips positions, `places` lists the stored ones. Returns nullopt if
/// the store is too small. Throws the errors of searching and walking.
std::optional<CalibrationPiece> calibration_piece(const Stores& store, std::int64_t first_row,
    std::span<const std::int64_t> places, const MakeWalk& make_walk);

}  // namespace infer
