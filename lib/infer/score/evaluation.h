#pragma once
// Scores shards with a model and its memories (program eval-ppl).

#include "infer/score/part_record.h"
#include "infer/score/tune.h"
#include "nn/base/runtime.h"

namespace infer {

struct EvaluationOptions {
  std::string model;    ///< folder of the model
  std::string adapter;  ///< adapter of the model; empty: none
  WindowOptions windows;
  std::string loss_on = "all";  ///< "marked": see WindowPlan::learned
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  MemoryOptions memory;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);  ///< except those of compute, which are listed elsewhere
  model::Loaded load() const;       ///< throws the errors of model::load()
};

/// A model with resolved options, ready to score texts. Not thread safe.
class Evaluation {
 public:
  /// Loads the model and opens the datastores. `given`: names of the options on the command line.
  /// Throws the errors of model::load(), open_beside(), plan_windows() and plan_memory(); for a
  /// model that reads pairs, those of refuse_windows_of_pairs().
  explicit Evaluation(const EvaluationOptions& options, const std::set<std::string>& given = {})
      : Evaluation(options, given, options.load(), nullptr) {}
  /// Takes the model that options.load() returned.
  Evaluation(const EvaluationOptions& options, const std::set<std::string>& given,
      model::Loaded loaded, const StoreOpener& open);

  /// Returns whether the model reads a source: then its data are pairs and have no windows.
  bool of_pairs() const;
  /// Opens shards for the model. Throws Error{bad_data} for another kind of data or tokenizer.
  shard::Dataset open(const std::vector<std::string>& paths) const;
  WindowPlan windows(const shard::Dataset& data) const;
  /// Returns the windows of a text that is no data set.
  WindowPlan windows() const;
  model::Loaded& loaded() { return loaded_; }
  const model::Loaded& loaded() const { return loaded_; }
  torch::Device device() const { return device_; }
  const MemoryPlan& memory() const { return memory_; }

  /// Tunes unset options on `data`; later calls use the result. See infer::tune().
  Tuned tune(const shard::Dataset& data, const TuneOptions& grid,
      const std::function<void(std::uint64_t)>& progress);
  /// Returns the memory options that resolve to memory(), tuned or not.
  MemoryOptions memory_options() const { return settled(options_.memory, memory_); }
  Totals score(const shard::Dataset& data, const Callbacks& watch) const;
  /// Throws Error{usage} if a part of `data` cannot be scored by itself, and the errors of
  /// windows().
  void expect_part(const shard::Dataset& data, core::Part part) const;
  /// Scores one part and returns a record for sum_parts(); `progress` receives its tokens so far.
  PartRecord score_part(const shard::Dataset& data, core::Part part,
      const std::function<void(std::uint64_t)>& progress) const;
  /// Returns the signature of results on `data`; see infer::signature().
  std::string signature(const shard::Dataset& data) const;
  /// Returns notes about the window, and about datastores and n-gram indices that contain this
  /// text, or may contain it.
  std::vector<std::string> notes_on(const shard::Dataset& data) const;
  /// Returns a note if weights are constant only because the text is scored in parts; else empty.
  std::string part_note() const;
  /// Returns a note if the window exceeds the model's positions; else empty.
  std::string window_note() const;
  bool retrieves() const { return retrieve_.any(); }
  /// Describes retrieved passages; see to_json(Prefixes).
  core::OrderedJson describe(const Prefixes& prefixes) const {
    return to_json(prefixes, *retrieve_.index);
  }

 private:
  EvaluationOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  RetrievePlan retrieve_;
  MemoryPlan memory_;
};

}  // namespace infer
