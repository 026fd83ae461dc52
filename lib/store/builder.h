#pragma once
// Makes a store, or adds to one, so that it can be stopped at any moment and goes on: rows go to
// disk, then building.json counts them; store.json comes last.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/folder_lock.h"
#include "store/build_progress.h"
#include "store/half.h"
#include "store/index.h"
#include "store/manifest.h"
#include "store/npy.h"
#include "store/projection.h"

namespace store {

/// What is made of all rows before the index (reduction.h).
struct Reduction {
  std::uint64_t pca = 0;  ///< keys are projected to so many numbers; 0: they stay
  /// Entries with the label of so many nearest are merged; 0: none.
  std::uint64_t merge_neighbours = 0;
  bool any() const { return pca > 0 || merge_neighbours > 0; }
  bool operator==(const Reduction&) const = default;
};
/// --keys all|pca:D and --prune none|merge|merge:K. Throws Error{usage}.
Reduction parse_reduction(const std::string& keys, const std::string& prune);

/// What a command puts into a store.
struct Plan {
  std::string model, tokenizer;  ///< fingerprints
  std::uint64_t width = 0, vocabulary = 0;
  Metric metric = Metric::ip;
  std::string index;  ///< exact, a factory string, or empty: default_index()
  std::string data;   ///< fingerprint of the shards
  core::Json windows;
  std::optional<SourcePart> part = {};  ///< of the data that the rows are of
  bool merges = false;                  ///< rows come from stores of parts, not from a model
  Reduction reduction = {};
  double key_scale = 1;                  ///< see Manifest; of rows given as float16 already done
  bool leaves_out = false;               ///< not every position has a row: places.npy says which
  std::string model_name, data_name;     ///< the model's folder and the shards, for messages
  std::vector<std::string> names = {};   ///< of the data's documents; empty: none
  std::vector<SourceShard> shards = {};  ///< of the data, without rows; empty: it is one
};

/// Called with what is being done, how much is done and of how much; may throw to stop.
using Watch = std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;

/// One command's rows. Not thread safe; the folder is locked while it lives.
class Builder {
 public:
  /// Begins a store in `folder` (made if it is not there), or goes on with one that an equal plan
  /// began. With `append` the rows go behind those of a complete store, of which model, tokenizer,
  /// width, metric, index and pca must be equal (an empty index and no pca take the store's).
  /// Throws Error{usage} naming what differs from a plan that was begun, if there is a store and no
  /// `append`, or if an addition has text that the store has, beside other text or through other
  /// windows; Error{bad_data} naming both models or tokenizers; Error{cannot_create} for a folder
  /// of other things.
  Builder(std::string folder, Plan plan, bool append);

  /// The store has these rows already: there is nothing to add or to finish.
  bool complete() const { return complete_; }
  /// Rows of this command that are on disk.
  std::uint64_t rows() const { return progress_.rows - base_.rows; }
  /// What the last commit() was given; null at the start.
  const core::Json& place() const { return progress_.place; }

  /// Of all rows, those among them that were added and not committed.
  const shard::Chain& digest() const { return progress_.digest; }

  /// keys (n, width), labels (n): appended. `places` (n), of a plan that leaves out, and only of
  /// that: the positions, counted over the command from 0, ascending. Throws Error{bad_data} for a
  /// key that is not finite, or not in float16 times the plan's key_scale, naming a scale that
  /// would do; and for a label outside the vocabulary.
  void add(std::span<const float> keys, std::span<const std::int32_t> labels,
           std::span<const std::int64_t> places = {});
  void add(std::span<const Half> keys, std::span<const std::int32_t> labels);
  /// What was added is on disk and will not be asked for again.
  void commit(core::Json place);
  /// Documents, index, recall, and store.json last. `first`: the first position of each document of
  /// this command, counted from the command's first one; a position is a row, unless the plan
  /// leaves out.
  Manifest finish(std::span<const std::int64_t> first, const Watch& watch = {});

 private:
  void expect_in_range(std::span<const float> keys) const;
  core::Json plan_json() const;
  void go_on();
  std::vector<std::int64_t> first_rows(std::span<const std::int64_t> first,
                                       const Manifest& manifest) const;
  void expect_new_text() const;
  std::vector<SourceShard> shards(std::span<const std::int64_t> first, std::uint64_t end) const;
  void write_document_names(Manifest& manifest, std::size_t added) const;
  std::unique_ptr<Index> make_index(const Manifest& manifest, std::span<const Half> keys,
                                    const Watch& watch);
  std::string folder_;
  Plan plan_;
  bool append_, complete_ = false;
  Manifest base_;  // the store that is there; rows 0: none
  std::optional<core::FolderLock> lock_;
  Progress progress_;
  std::uint64_t added_ = 0;  // rows that are not committed
  std::optional<NpyWriter> keys_, values_, places_;
  std::int64_t places_before_ = 0;  // of the rows that were there
  Projection projection_;           // of the store that is added to
  std::vector<float> scaled_;       // keys
  std::vector<Half> halves_;
  std::vector<std::int64_t> moved_;  // places
};

/// Throws Error{usage} for an index that cannot be made and a pca of as many numbers as a key has.
void expect_possible(const Plan& plan);

/// Digest of a row, of which a store's is made.
core::Digest row_digest(std::span<const Half> key, std::int32_t label);

/// An index of no rows yet that has learned from a sample of keys (N, width).
std::unique_ptr<Index> train_index(const std::string& factory, std::span<const Half> keys,
                                   std::uint64_t width, Metric metric, const Watch& watch);
inline constexpr std::uint64_t kBatchBytes = 64 << 20;  ///< of float32 keys given to FAISS at once
/// Adds rows from .. end of keys (N, width) to an index, in batches of bounded memory.
void add_rows(Index& index, std::span<const Half> keys, std::uint64_t width, std::uint64_t from,
              const Watch& watch);

/// What store.json records of an index: over so many rows of the store as queries, so many nearest,
/// with so many lists.
inline constexpr std::int64_t kRecallQueries = 200, kRecallNeighbours = 1024, kRecallProbes = 32;
/// Of `queries` rows of the store, chosen by a fixed seed, the share of the k nearest that the
/// index finds.
Recall measure_recall(const Index& index, std::span<const Half> keys, std::uint64_t width,
                      Metric metric, std::int64_t queries, std::int64_t k, std::int64_t nprobe);

}  // namespace store
