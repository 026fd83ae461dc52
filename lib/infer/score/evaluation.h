#pragma once
// A model with its memories, set up to score texts: what eval-ppl does with each of its shards.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "infer/score/part_record.h"
#include "infer/score/scorer.h"
#include "infer/score/tune.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/layer_reach.h"
#include "infer/windows/retriever.h"
#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/base/runtime.h"
#include "shard/dataset.h"

namespace infer {

struct EvaluationOptions {
  std::string model;    ///< its folder
  std::string adapter;  ///< of the model; empty: none
  WindowOptions windows;
  std::string loss_on = "all";  ///< marked: see WindowPlan::learned
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  MemoryOptions memory;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);  ///< but for compute's, which stand elsewhere
};

/// Not thread safe.
class Evaluation {
 public:
  /// Loads the model and opens the stores. `given`: the options that were not left to their
  /// defaults. Throws as model::load(), open_beside(), plan_windows(), plan_memory()
  /// and, where the model reads pairs, refuse_windows_of_pairs() do.
  explicit Evaluation(const EvaluationOptions& options, const std::set<std::string>& given = {},
                      const StoreOpener& open = nullptr);

  /// Whether the model reads a source: then its data are pairs, and have no windows.
  bool of_pairs() const;
  /// Shards that the model reads. Throws Error{bad_data} for another kind or tokenizer.
  shard::Dataset open(const std::vector<std::string>& paths) const;
  WindowPlan windows(const shard::Dataset& data) const;
  /// Of a text that is no data set.
  WindowPlan windows() const;
  model::Loaded& loaded() { return loaded_; }
  const model::Loaded& loaded() const { return loaded_; }
  torch::Device device() const { return device_; }
  const MemoryPlan& memory() const { return memory_; }

  /// Chooses on `data` what the options left open; it holds from here on. See infer::tune().
  Tuned tune(const shard::Dataset& data, const TuneOptions& grid,
             const std::function<void(std::uint64_t)>& progress);
  /// The memory options that come to memory(), tuned or not.
  MemoryOptions memory_options() const { return settled(options_.memory, memory_); }
  Totals score(const shard::Dataset& data, const Watch& watch) const;
  /// One part of score(), as a record for sum_parts(); `progress` is told its tokens so far.
  PartRecord score_part(const shard::Dataset& data, core::Part part,
                        const std::function<void(std::uint64_t)>& progress) const;
  /// Of a figure of `data`; see infer::signature().
  std::string signature(const shard::Dataset& data) const;
  /// What there is to say of the window, and of stores and indices of n-grams that hold this very
  /// text, or may: lines.
  std::vector<std::string> notes_on(const shard::Dataset& data) const;
  /// Says that the window is longer than the model's positions; empty: it is not.
  std::string window_note() const;
  bool retrieves() const { return retrieve_.any(); }
  /// See to_json(Prefixes).
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
