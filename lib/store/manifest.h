#pragma once
// Reads and writes store.json, which lists the contents of a store, its model and its files. It is
// renamed into place last, which commits the rows.
// Lists the file names of a store: only these files may be replaced or removed in its folder.
// Reads and writes building.json, which records an unfinished command on a store and how many rows
// on disk are not yet in store.json.

#include "shard/header.h"

namespace store {

/// Upper bounds for every store.
inline constexpr std::uint64_t kMostRows = std::uint64_t{1} << 40,
                               kMostWidth = std::uint64_t{1} << 20;

/// A Metric is the similarity of key and query; a larger score is nearer.
enum class Metric {
  ip,  ///< q . k
  l2,  ///< -|q - k|^2
};
inline std::string_view name_of(Metric metric) { return metric == Metric::ip ? "ip" : "l2"; }
/// Returns true for a valid key scale: 1, 1/2, 1/4, ... to 2^-100.
bool is_key_scale(double scale);
/// Returns `keys` times `scale`, stored in `room`; for scale 1, the keys themselves.
std::span<const float> scaled(std::span<const float> keys, double scale, std::vector<float>& room);
/// Parses a metric's name. Throws Error{bad_data}, naming `origin`.
Metric metric_from(std::string_view name, const std::string& origin);

/// A Recall is the fraction of the k true nearest neighbours that the index finds.
struct Recall {
  std::int64_t k = 0, nprobe = 0;
  std::int64_t queries = 0;  ///< number of rows used as queries; 0: not measured
  double recall = 0;
};

/// A SourcePart is the part of a text that a store holds: its number, from 1, and its range of rows
/// [begin, end) in a store of the whole text.
struct SourcePart {
  std::uint64_t number = 1, of = 1;
  std::uint64_t begin = 0, end = 0;
  bool operator==(const SourcePart&) const = default;
};

/// A SourceShard describes a source's entries from one shard.
struct SourceShard {
  std::string data;  ///< fingerprint
  std::uint64_t rows = 0, documents = 0;
};

/// A Source describes the text of the keys; each command that added rows has one entry.
struct Source {
  std::string data;  ///< fingerprint of the shards
  std::uint64_t rows = 0, documents = 0;
  core::Json windows;  ///< options that affect keys: window, stride, restart, precision
  std::optional<SourcePart> part = {};  ///< unset: the whole text
  /// The shards in order; empty if an older version built the store.
  std::vector<SourceShard> shards = {};
};
/// Returns true if the two sources may share entries: they have one text and no disjoint parts of
/// it, or both have entries of one shard.
bool overlap(const Source& a, const Source& b);

/// A Receipt records a document that was removed; see removal.h.
struct Receipt {
  std::uint64_t document = 0;  ///< its number when it was removed
  std::uint64_t rows = 0;
  std::string values;            ///< XXH3-128 of its labels, int32 little-endian
  std::uint64_t generation = 0;  ///< the first generation without it
};

/// A Calibration records how useful the store's entries are to its model, measured on a piece of
/// the text whose own entries are excluded; see *--calibrate* in build-datastore(1).
struct Calibration {
  std::uint64_t tokens = 0;  ///< tokens of the piece
  /// Temperature of the kNN distribution: divides the scores.
  double temperature = 1;
  double share = 0;  ///< interpolation weight of the kNN distribution
  double joint_temperature =
      /// Temperature in the joint softmax: divides the scores, after division by sqrt(width).
      1;
  /// Bias in the joint softmax, a log-weight added to the scores.
  double joint_bias = 0;
};

/// A Manifest is the contents of store.json.
struct Manifest {
  std::uint64_t generation = 1;  ///< counts commits: building, additions, removals
  std::uint64_t rows = 0, width = 0, documents = 0;
  std::uint64_t vocabulary = 0;  ///< exclusive upper bound of labels
  Metric metric = Metric::ip;
  std::string index = "exact";  ///< or FAISS's factory string
  std::string model;            ///< fingerprint
  std::string tokenizer;        ///< fingerprint of its canonical JSON; empty: none
  shard::Chain digest;          ///< chain of every row's XXH3-128 of (key, label)
  /// XXH3-128 of the files' bytes; empty: no file.
  std::string documents_hash, index_hash;
  std::string keys_file = "keys.npy";  ///< empty: the keys were not kept
  std::string values_file = "values.npy";
  std::string values_hash;  ///< XXH3-128 of its elements, if the keys were not kept; else empty
  std::string documents_file = "documents.npy";
  std::string index_file;              ///< empty: exact
  std::string places_file;             ///< of a store that leaves positions out; empty: it is whole
  std::string places_hash;             ///< XXH3-128 of its elements
  std::string weights_file;            ///< entries per row; empty: one each
  std::string weights_hash;            ///< XXH3-128 of its elements
  std::uint64_t merge_neighbours = 0;  ///< K of --prune merge:K, if rows have weights
  std::string projection_file;         ///< projection of the model's keys; empty: none
  std::string projection_hash;         ///< XXH3-128 of its elements
  std::string names_file;              ///< names of the documents; empty: none
  std::string names_hash;              ///< XXH3-128 of its bytes
  std::uint64_t model_width = 0;       ///< width of the model's keys, if they are projected
  double key_scale = 1;                ///< power of 2 by which the model's keys were multiplied
  Recall recall;
  /// Calibration; it does not affect search results.
  std::optional<Calibration> calibration = {};
  std::vector<Source> sources;
  std::vector<Receipt> removed;

  bool exact() const { return index == "exact"; }
  /// Returns false if only the index has the keys, as codes.
  bool keyed() const { return !keys_file.empty(); }
  /// Returns true if each row, within a document, is of the position after the previous row's.
  bool whole() const { return places_file.empty(); }
  bool weighted() const { return !weights_file.empty(); }
  bool projected() const { return !projection_file.empty(); }
  bool named() const { return !names_file.empty(); }
  bool scaled() const { return key_scale != 1; }
  /// Returns true if the store lacks some of the model's original keys.
  bool reduced() const { return !keyed() || !whole() || projected() || weighted(); }
  /// Returns the width of queries, which is that of the model's keys.
  std::uint64_t query_width() const { return projected() ? model_width : width; }
  /// Returns the XXH3-128 of everything that affects search results: rows, their order and
  /// documents, model, metric, index.
  std::string fingerprint() const;
};

inline constexpr const char* kManifestName = "store.json";
/// In the folder of a store without keys: the folder of a store with the same rows and their keys,
/// or a link to it.
inline constexpr const char* kKeysLink = "keys";

core::OrderedJson to_json(const Receipt& receipt);
core::OrderedJson to_json(const SourcePart& part);
core::OrderedJson to_json(const Calibration& calibration);
core::OrderedJson to_json(const Manifest& manifest);
/// Parses a manifest, which is untrusted: file names must be a store's, sizes are bounded, and it
/// must match its own hash. Throws Error{bad_data}, naming `origin`, or both versions.
Manifest manifest_from(const core::Json& json, const std::string& origin);

/// Reads store.json. Throws Error{no_input} if the folder is not a store or is incomplete.
Manifest read_manifest(const std::string& folder);
/// Writes store.json through core::Output.
void write_manifest(const std::string& folder, const Manifest& manifest);

/// Returns true for a name that only a store's programs use: store.json, building.json,
/// index.trained.faiss, and keys, values, documents, places, weights, projection (.npy), names
/// (.txt) and index (.faiss) of any generation.
bool is_store_file(std::string_view name);

/// Returns the file names that a manifest lists, including store.json.
std::vector<std::string> files_of(const Manifest& manifest);

/// Throws Error{cannot_create}, naming a file, unless the folder holds a store, an unfinished
/// store, or nothing.
void expect_free(const std::string& folder);

/// Removes files of earlier generations and of interrupted commands, that is, files that neither
/// the manifest nor an unfinished command names, and syncs the folder. Keeps files with other
/// names. Throws Error{io}.
void remove_stale_files(const std::string& folder, const Manifest& manifest);

/// Removes all files of a store, and the folder if it is then empty.
void remove_store(const std::string& folder);

/// Progress is the state of an unfinished command: the rows on disk beyond those of store.json, or
/// a removal.
struct Progress {
  core::Json plan;           ///< the command's plan; an equal plan may resume it
  std::uint64_t rows = 0;    ///< rows of the store, including those before the command
  shard::Chain digest;       ///< digest of all these rows, as in Manifest
  core::Json place;          ///< the position in the input from which the command resumes
  std::string trained_hash;  ///< XXH3-128 of kTrainedName; empty: not yet trained

  std::uint64_t generation() const;  ///< returns the generation that the command makes
  /// Returns the documents that the command removes, ascending; empty if it adds rows.
  std::vector<std::int64_t> removes() const;
  /// Returns the progress of a removal. It remains until its receipts have been delivered.
  static Progress removal(const std::vector<std::int64_t>& documents, std::uint64_t generation);
};

inline constexpr const char* kProgressName = "building.json";
inline constexpr const char* kTrainedName = "index.trained.faiss";

/// Reads building.json; returns nothing if the folder has none. Throws Error{bad_data}.
std::optional<Progress> read_progress(const std::string& folder);
/// Writes building.json through core::Output.
void write_progress(const std::string& folder, const Progress& progress);
void remove_progress(const std::string& folder);
/// Throws Error{usage} if the receipts of an earlier removal have not been delivered, unless that
/// removal has exactly the documents `but`.
void expect_no_removal(const std::string& folder, const std::vector<std::int64_t>& but = {});

}  // namespace store
