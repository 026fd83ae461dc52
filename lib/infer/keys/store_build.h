#pragma once
// A store of a data set, from its options to its last file: build-datastore's work.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/launcher.h"
#include "infer/keys/entries.h"
#include "infer/keys/fill_store.h"
#include "infer/windows/layer_reach.h"
#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/base/runtime.h"
#include "shard/dataset.h"
#include "store/builder.h"

namespace infer {

struct StoreBuildOptions {
  std::string model;                    ///< the folder of the model whose keys they are
  std::string adapter;                  ///< of the model; empty: none
  std::string index;                    ///< see store::Plan
  std::string metric = "auto";          ///< auto: l2 of a model trained without memory, else ip
  std::string append;                   ///< a store that gets the rows; empty: a new one does
  std::string part = core::kWholePart;  ///< see core::part()
  std::string keys = "all", prune = "none";  ///< see store::parse_reduction()
  double key_scale = 1;                      ///< see store::Manifest
  double skip_known = 1;  ///< positions to whose token the model alone gives more have no row
  bool calibrate = true;  ///< see calibrate.h; of a whole text only
  WindowOptions windows;
  LayerReachOptions reach;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);  ///< but for compute's, which stand elsewhere

  /// The store that gets rows, `output` (-o) or --append. Throws Error{usage} where it is not said,
  /// or no model, or for options among the `given` that do not go with a part.
  std::string folder(const std::string& output, const std::set<std::string>& given) const;
};

/// The entries of a data set, in order: of its windows, or of its pairs. Model and data must
/// outlive it.
std::unique_ptr<EntryWalk> make_walk(nn::Model& model, const shard::Dataset& data,
                                     const WindowPlan& windows, torch::Device device);

/// One command's rows, which go into a new store or behind those of one. Stopped at any moment, the
/// same command goes on. Not thread safe.
class StoreBuild {
 public:
  /// Begins the store in `folder`, or goes on with it. `given`: the names of the options that were
  /// given; an addition has the store's metric unless one was. Throws Error{usage} for options that
  /// contradict each other or the data, and all that model::load(), shard::Dataset and
  /// store::Builder throw.
  StoreBuild(const StoreBuildOptions& options, const std::vector<std::string>& files,
             const std::string& folder, const std::set<std::string>& given);

  /// Says that the window is longer than the model's positions; empty: it is not.
  const std::string& window_note() const { return window_note_; }
  /// The store has these rows already: there is nothing to fill or to finish.
  bool complete() const { return builder_->complete(); }
  /// Rows there will be at most, and rows that are on disk.
  std::uint64_t count() const { return range_.size(); }
  std::uint64_t rows() const { return builder_->rows(); }
  /// Adds all rows that are not there yet. False: stopped; what was added is on disk.
  bool fill(const FillWatch& watch);
  /// Index and store.json, and then what the store is worth, in it too. Of a store that was
  /// complete: what it holds, calibrated if it was not.
  store::Manifest finish(const store::Watch& watch);
  /// What finish() came to, in a line.
  std::string summary(const store::Manifest& manifest) const;

 private:
  void calibrate(store::Manifest& manifest, const store::Watch& watch);
  std::string folder_;
  torch::Device device_;
  model::Loaded loaded_;
  shard::Dataset data_;
  std::unique_ptr<store::Builder> builder_;
  std::unique_ptr<EntryWalk> walk_;
  EntryRange range_;  // of the walk: the part's
  std::string window_note_;
  double most_known_ = 1;
  bool was_complete_ = false;
  bool chooses_index_ = false;  // by the rows
  bool calibrates_ = true, appends_ = false;
  WindowPlan windows_;
};

}  // namespace infer
