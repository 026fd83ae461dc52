#pragma once
// Scores shards with a model and its memories (program eval-ppl).
// Result of one part of an evaluation, as a file with one JSON line, and the sum of all parts.

#include "core/build_info.h"
#include "infer/loops/make_engine.h"
#include "infer/score/tune.h"

namespace infer {

/// {"part": 1, "parts": 8, "groups": [begin, end, of], "signature": "...", "revision": "1a2b3c4",
/// "tokens": N, "bytes": X, "words": X, "nats": [...], "hash": XXH3-128 of the line without it};
/// optionally "searches": [made, followed, skipped], "worse": N, "compared": true,
/// "constant_nats": [...]
struct PartRecord {
  core::Part part;
  std::array<std::int64_t, 3> groups = {};  ///< of windows that share a forward pass: see
                                            ///< Callbacks::cut
  std::string signature;                    ///< see report.h
  Totals totals = {};        ///< of this part, but bytes and words of all parts together
  std::vector<double> nats;  ///< for each window, in the order in which one process adds them
  std::vector<double> constant_nats = {};    ///< for each window, with gates
  std::string revision = core::build::kGit;  ///< git revision of the build; parts may differ
};

/// Options that select one part, or the sum of all parts.
struct PartOptions {
  std::string part = core::kWholePart;  ///< see core::part()
  bool sum = false;
  bool datastore_ranks = false;  ///< ranks search their own datastores for all ranks
  void fields(core::FieldList& f);

  bool any() const { return sum || core::is_part(part); }
  /// Throws Error{usage} for more than one of part, sum and `ranks` (processes that share the
  /// text).
  void check(bool ranks) const;
};

/// Formats a record as one line.
std::string to_text(const PartRecord& record);
/// Parses a record. Throws Error{bad_data} that names the `origin`.
PartRecord parse_part(const std::string& line, const std::string& origin);

struct PartsSum {
  Totals totals;  ///< bit-identical to those of one process; without seconds
  std::string signature;
  std::set<std::string> revisions;

  core::OrderedJson figures() const;  ///< see report.h; includes signature and revisions
};
/// A part's record as text, and its name in messages.
struct NamedLine {
  std::string name, line;
};
/// Sums all parts, in any order. Throws Error{usage} that names a part which is missing,
/// duplicated, of another evaluation or divided differently; Error{bad_data} for a text without
/// scored tokens.
PartsSum sum_parts(const std::vector<NamedLine>& lines);
/// Sums the records in files. Also throws Error{no_input}.
PartsSum sum_files(const std::vector<std::string>& paths);

struct EvaluationOptions {
  std::string model;    ///< folder of the model
  std::string adapter;  ///< adapter of the model; empty: none
  WindowOptions windows;
  std::string loss_on = "all";  ///< "marked": see WindowPlan::learned
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  MemoryOptions memory;
  ScoringOptions compute;
  DynamicOptions dynamic;
  /// Except those of compute and dynamic, which are listed elsewhere.
  void fields(core::FieldList& f);
  model::Loaded load() const;  ///< throws the errors of model::load()
};

/// A model with resolved options, ready to score texts. Not thread safe.
class Evaluation {
 public:
  /// Loads the model and opens the datastores. Throws the errors of model::load(), open_models(),
  /// plan_windows() and plan_memory(); for a model that reads pairs, those of
  /// WindowOptions::refuse_for_pairs().
  explicit Evaluation(const EvaluationOptions& options) : Evaluation(options, options.load()) {}
  /// Takes the model that options.load() returned, and files that are open.
  Evaluation(const EvaluationOptions& options, model::Loaded loaded, OpenMemories open = {});

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
  // Invariants:
  // - options_ are settled: protocols and retrieval have changed the windows before the first call.
  // - loaded_ is on device_ and never replaced; its layers have the reach of options_.
  // - memory_ is resolved for this model. tune() alone replaces it; so results and signature() of
  //   a data set stay the same until the next tune().
  EvaluationOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  RetrievePlan retrieve_;
  MemoryPlan memory_;
};

}  // namespace infer
