#pragma once
// Builds a store or appends to one. The work can be interrupted at any moment and resumed: rows go
// to disk first, then building.json counts them; store.json is written last.

#include "store/index.h"
#include "store/npy.h"
#include "store/projection.h"

namespace store {

/// A Reduction is applied to all rows before the index is made (reduction.h).
struct Reduction {
  std::uint64_t pca = 0;  ///< dimension to which keys are projected; 0: none
  /// Number of nearest neighbours considered when entries with equal labels are merged; 0: no
  /// merging.
  std::uint64_t merge_neighbours = 0;
  bool drop_keys = false;  ///< the complete store has no keys, only the index's codes
  bool any() const { return pca > 0 || merge_neighbours > 0 || drop_keys; }
  bool operator==(const Reduction&) const = default;
};
/// Parses --keys all|none|pca:D and --prune none|merge|merge:K. Throws Error{usage}.
Reduction parse_reduction(const std::string& keys, const std::string& prune);

/// A Plan says what a command puts into a store.
struct Plan {
  std::string model, tokenizer;  ///< fingerprints
  std::uint64_t width = 0, vocabulary = 0;
  Metric metric = Metric::ip;
  std::string index;  ///< exact, a factory string, or empty: the first that suffices of
                      ///< index_choices()
  std::string data;   ///< fingerprint of the shards
  core::Json windows;
  std::optional<SourcePart> part = {};  ///< the part of the data that the rows belong to
  /// The rows come from stores of parts, not from a model.
  bool merges = false;
  Reduction reduction = {};
  /// See Manifest; rows given as float16 are already scaled.
  double key_scale = 1;
  /// Some positions have no row; places.npy lists those that have one.
  bool leaves_out = false;
  /// The model's folder and the shards, for messages.
  std::string model_name, data_name;
  std::vector<std::string> names = {};  ///< names of the data's documents; empty: none
  /// The shards of the data, without row counts; empty: the data is one shard.
  std::vector<SourceShard> shards = {};
};

/// A ProgressCallback receives the current step, the amount done and the total. It may throw to
/// stop the work.
using ProgressCallback =
    std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;
/// Calls `watch` if it is set.
inline void report(const ProgressCallback& watch, const std::string& what, std::uint64_t done,
    std::uint64_t total) {
  if (watch) watch(what, done, total);
}

/// A Builder writes the rows of one command. It locks the folder during its lifetime. Not thread
/// safe.
class Builder {
 public:
  /// Begins a store in `folder`, which is created if necessary, or resumes one that an equal plan
  /// began. With `append`, adds the rows to a complete store with keys, whose model, tokenizer,
  /// width, metric, index and pca must be equal (an empty index and no pca mean the store's).
  /// Throws Error{usage} if an unfinished plan differs (naming the difference), if a store exists
  /// and `append` is false, or if an addition has text that the store already has, together with
  /// other text or with other windows; Error{bad_data}, naming both, for another model or
  /// tokenizer; Error{cannot_create} for a folder with other files.
  Builder(std::string folder, Plan plan, bool append);

  /// Returns true if the store already has these rows, so that there is nothing to add or finish.
  bool complete() const { return complete_; }
  /// Returns the number of this command's rows on disk.
  std::uint64_t rows() const { return progress_.rows - base_.rows; }
  /// Returns the argument of the last commit(); null at the start.
  const core::Json& place() const { return progress_.place; }

  /// Returns the digest of all rows, including those that are added but not committed.
  const shard::Chain& digest() const { return progress_.digest; }

  /// Appends rows: keys (n, width), labels (n). `places` (n) are the positions of the rows, counted
  /// over the command from 0 and ascending; required if the plan leaves positions out, and empty
  /// otherwise. Throws Error{bad_data} for a key that is not finite, for a key that overflows
  /// float16 after scaling by key_scale (the message names a sufficient scale), and for a label
  /// outside the vocabulary.
  void add(std::span<const float> keys, std::span<const std::int32_t> labels,
      std::span<const std::int64_t> places = {});
  void add(std::span<const Half> keys, std::span<const std::int32_t> labels);
  /// Makes the added rows durable and records `place`, from which the command would resume.
  void commit(core::Json place);
  /// Writes documents, index and recall, then store.json. `first` is the first position of each
  /// document of this command, counted from the command's first position. A position is a row
  /// unless the plan leaves positions out. If the plan drops the keys, their file is deleted after
  /// store.json is written. `complete` may add to the manifest before it is written; all other
  /// files are on disk then. Throws Error{usage} if such a store has too few rows for an index.
  Manifest finish(std::span<const std::int64_t> first, const ProgressCallback& watch = {},
      const std::function<void(Manifest&)>& complete = {});

 private:
  void expect_in_range(std::span<const float> keys) const;
  core::Json plan_json() const;
  void resume();
  std::vector<std::int64_t> first_rows(
      std::span<const std::int64_t> first, const Manifest& manifest) const;
  void expect_new_text() const;
  std::vector<SourceShard> shards(std::span<const std::int64_t> first, std::uint64_t end) const;
  void write_document_names(Manifest& manifest, std::size_t added) const;
  std::unique_ptr<Index> extended_index(
      const Manifest& manifest, std::span<const Half> keys, const ProgressCallback& watch) const;
  std::unique_ptr<Index> make_index(const Manifest& manifest, std::span<const Half> keys,
      bool resumes, const ProgressCallback& watch);
  void drop_keys(Manifest& manifest) const;
  void write_index(Manifest& manifest, std::span<const Half> keys, const ProgressCallback& watch);
  // Invariants between calls:
  // - The rows before base_.rows are those of the store and never change.
  // - building.json has the progress_ of the last commit(). The arrays on disk have at least its
  //   rows; a rerun overwrites those behind them.
  // - progress_.digest is of all progress_.rows + added_ rows.
  std::string folder_;
  Plan plan_;
  bool append_, complete_ = false;
  Manifest base_;  // the existing store; rows 0: none
  std::optional<core::FolderLock> lock_;
  Progress progress_;
  std::uint64_t added_ = 0;  // number of rows that are not committed
  std::optional<NpyWriter> keys_, values_, places_;
  std::int64_t places_before_ = 0;  // number of positions of the existing rows
  Projection projection_;           // projection of the store that is appended to
  std::vector<float> scaled_;       // scaled keys
  std::vector<Half> halves_;
  std::vector<std::int64_t> moved_;  // places of the rows in the store
};

/// Throws Error{usage} for an index that cannot be made, for a pca whose dimension is not below the
/// keys', and for a store of at most `rows` rows that would have neither keys nor index.
void expect_possible(const Plan& plan, std::uint64_t rows);

/// Returns the name of a file of the store's generation: "keys.npy" of the first, "keys.2.npy".
std::string file_name(const Manifest& manifest, std::string_view stem, std::string_view ending);

/// Returns the digest of one row; the store's digest is a chain of these.
core::Digest row_digest(std::span<const Half> key, std::int32_t label);

/// Returns an index without rows, trained on a sample of keys (N, width).
std::unique_ptr<Index> train_index(const std::string& factory, std::span<const Half> keys,
    std::uint64_t width, Metric metric, const ProgressCallback& watch);
inline constexpr std::uint64_t kBatchBytes = 64 << 20;  ///< of float32 keys passed to FAISS at once
/// Adds the rows [from, end) of keys (N, width) to an index, in batches of bounded memory.
void add_rows(Index& index, std::span<const Half> keys, std::uint64_t width, std::uint64_t from,
    const ProgressCallback& watch);

/// The parameters of the recall that store.json records: number of query rows, neighbours, and
/// inverted lists searched (nprobe).
inline constexpr std::int64_t kRecallQueries = 200, kRecallNeighbours = 1024, kRecallProbes = 32;
/// Measures recall: the fraction of the k nearest neighbours that the index finds for `queries`
/// rows of the store, chosen with a fixed seed.
Recall measure_recall(const Index& index, std::span<const Half> keys, std::uint64_t width,
    Metric metric, std::int64_t queries, std::int64_t k, std::int64_t nprobe);

}  // namespace store
