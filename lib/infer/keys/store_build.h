#pragma once
// Builds a datastore from a data set (program build-datastore).
// Writes the entries of a walk to the rows of a store.

#include "infer/keys/entries.h"
#include "infer/windows/layer_reach.h"
#include "nn/base/runtime.h"
#include "store/builder.h"

namespace infer {

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
  std::string model;                    ///< folder of the model that computes the keys
  std::string adapter;                  ///< adapter of the model; empty: none
  std::string index;                    ///< see store::Plan
  std::string metric = "auto";          ///< auto: l2 for a model trained without memory, else ip
  std::string append;                   ///< store to which rows are appended; empty: a new store
  std::string part = core::kWholePart;  ///< see core::part()
  std::string keys = "all", prune = "none";  ///< see store::parse_reduction()
  double key_scale = 1;                      ///< see store::Manifest
  double skip_known = 1;  ///< skips positions whose target has a higher model probability
  bool calibrate = true;  ///< see calibrate.h; for whole texts only
  WindowOptions windows;
  LayerReachOptions reach;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);  ///< except those of compute, which are listed elsewhere

  /// Returns the folder of the store, `output` (-o) or --append. Throws Error{usage} if it or the
  /// model is missing, and for options among the `given` that cannot be combined with a part.
  std::string folder(const std::string& output, const std::set<std::string>& given) const;
};

/// Adds the rows of one command to a new or existing store. An interrupted build resumes when the
/// command is rerun. Not thread safe.
class StoreBuild {
 public:
  /// Begins the store in `folder` or resumes it. `given`: names of the options on the command line;
  /// an addition uses the store's metric unless --metric is given. Throws Error{usage} for options
  /// that contradict each other or the data, and the errors of model::load(), shard::Dataset and
  /// store::Builder.
  StoreBuild(const StoreBuildOptions& options, const std::vector<std::string>& files,
      const std::string& folder, const std::set<std::string>& given);

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
