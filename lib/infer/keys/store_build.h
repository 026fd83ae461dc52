#pragma once
// Builds a datastore from a data set (program build-datastore).
// Writes the entries of a walk to the rows of a store.
// Calibrates the interpolation weight and temperatures of a store on a piece of its own text.

#include "infer/keys/entries.h"
#include "infer/stores/stores.h"
#include "nn/base/runtime.h"
#include "store/builder.h"

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

struct FillCallbacks {
  std::function<void(std::uint64_t entries)> progress = {};
  std::function<bool()> stop = {};  ///< polled after each block
  double commit_every_s = 10;
};

/// Adds the walk's entries in `range` to the builder, from its present row on, and commits them
/// periodically. With `most_known` < 1, skips entries whose label has a higher model probability
/// (the builder's plan must skip positions). With carried windows, writes the State to
/// FOLDER/step-N/ (as a training checkpoint) before each commit; call remove_states() when the
/// store is complete. Returns false if stopped; added rows are committed.
bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
    const std::string& folder, torch::Device device, const FillCallbacks& watch = {},
    double most_known = 1);
/// Removes the States that fill_store() wrote to the folder.
void remove_states(const std::string& folder);

struct StoreBuildOptions {
  std::string model;    ///< folder of the model that computes the keys
  std::string adapter;  ///< adapter of the model; empty: none
  std::string index;    ///< see store::Plan
  /// auto: that of the store to append to, else l2 for a model trained without memory, else ip.
  std::string metric = "auto";
  std::string append;                   ///< store to which rows are appended; empty: a new store
  std::string part = core::kWholePart;  ///< see core::part()
  std::string keys = "all", prune = "none";  ///< see store::parse_reduction()
  double key_scale = 0;   ///< see store::Manifest; 0 (auto): 1, or that of the store to append to
  double skip_known = 1;  ///< skips positions whose target has a higher model probability
  bool calibrate = true;  ///< see CalibrationPiece; for whole texts only
  WindowOptions windows;
  LayerReachOptions reach;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);  ///< except those of compute, which are listed elsewhere

  /// Returns the folder of the store, `output` (-o) or --append. Throws Error{usage} if it or the
  /// model is missing, and for options that cannot be combined with a part.
  std::string folder(const std::string& output) const;
};

/// Adds the rows of one command to a new or existing store. An interrupted build resumes when the
/// command is rerun. Not thread safe.
class StoreBuild {
 public:
  /// Begins the store in `folder` or resumes it. Throws Error{usage} for options that contradict
  /// each other or the data, and the errors of model::load(), shard::Dataset and store::Builder.
  StoreBuild(const StoreBuildOptions& options, const std::vector<std::string>& files,
      const std::string& folder);

  /// Returns a note if the window exceeds the model's positions; else empty.
  const std::string& window_note() const { return window_note_; }
  /// Returns whether the store already has these rows.
  bool complete() const { return builder_->complete(); }
  /// count(): maximum number of rows. rows(): number of rows on disk.
  std::uint64_t count() const { return range_.size(); }
  std::uint64_t rows() const { return builder_->rows(); }
  /// Adds all missing rows. Returns false if stopped; added rows are on disk.
  bool fill(const FillCallbacks& watch);
  /// Writes the index, calibrates the store and writes store.json. For a complete store, returns
  /// its manifest; calibrates it if it is not calibrated.
  store::Manifest finish(const store::ProgressCallback& watch);
  /// Returns a one-line summary of finish().
  std::string summary(const store::Manifest& manifest) const;

 private:
  void calibrate(store::Manifest& manifest, const store::ProgressCallback& watch) const;
  // Invariants:
  // - The builder holds the store's lock, so no other process writes in folder_.
  // - The rows of this command are entries of range_ in the walk's order: all, or with most_known_
  //   below 1 some of them. builder_->place() is the number of entries whose rows are on disk.
  // - finish() alone writes store.json, after all other files. Until then, a rerun of the command
  //   continues at place().
  std::string folder_;
  torch::Device device_;
  model::Loaded loaded_;
  shard::Dataset data_;
  std::unique_ptr<store::Builder> builder_;
  std::unique_ptr<EntryWalk> walk_;
  EntryRange range_;  // the part's range of the walk
  std::string window_note_;
  double most_known_ = 1;
  bool changed_ = false;        // finish() has written store.json
  bool chooses_index_ = false;  // by the number of rows
  bool calibrates_ = true, appends_ = false;
  WindowPlan windows_;
};

}  // namespace infer
