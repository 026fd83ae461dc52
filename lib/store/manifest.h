#pragma once
// store.json: what a store holds, of which model, in which files. Renamed into place last, it is
// what makes rows count.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/json.h"
#include "shard/fingerprint.h"

namespace store {

/// Of any store.
inline constexpr std::uint64_t kMostRows = std::uint64_t{1} << 40,
                               kMostWidth = std::uint64_t{1} << 20;

/// How near a key is to a query; the larger score is the nearer.
enum class Metric {
  ip,  ///< q . k
  l2,  ///< -|q - k|^2
};
std::string_view name_of(Metric metric);
/// Whether keys may be multiplied by it: 1, 1/2, 1/4, ... to 2^-100.
bool is_key_scale(double scale);
/// `keys` times `scale`, in `room`; for 1 the keys themselves.
std::span<const float> scaled(std::span<const float> keys, double scale, std::vector<float>& room);
/// Throws Error{bad_data} naming `origin`.
Metric metric_from(std::string_view name, const std::string& origin);

/// Share of the k true nearest that the index finds.
struct Recall {
  std::int64_t k = 0, nprobe = 0;
  std::int64_t queries = 0;  ///< rows of the store that served as queries; 0: not measured
  double recall = 0;
};

/// Which part of a text a store holds: its number, from 1, and the rows, [begin, end), that it has
/// in one store of the whole text.
struct SourcePart {
  std::uint64_t number = 1, of = 1;
  std::uint64_t begin = 0, end = 0;
  bool operator==(const SourcePart&) const = default;
};

/// What a source has of one shard.
struct SourceShard {
  std::string data;  ///< fingerprint
  std::uint64_t rows = 0, documents = 0;
};

/// What the keys are of: one entry for each call that added rows.
struct Source {
  std::string data;  ///< fingerprint of the shards
  std::uint64_t rows = 0, documents = 0;
  core::Json windows;  ///< options that change keys: window, stride, restart, precision
  std::optional<SourcePart> part = {};  ///< none: the whole text
  /// In order; none: built by a version that did not keep them.
  std::vector<SourceShard> shards = {};
};
/// Whether entries of the one may be entries of the other: they are of one text, and not of
/// different parts of it, or both have entries of one shard.
bool overlap(const Source& a, const Source& b);

/// A document that was removed; see removal.h.
struct Receipt {
  std::uint64_t document = 0;  ///< its number at the time
  std::uint64_t rows = 0;
  std::string values;            ///< XXH3-128 of its labels, int32 little-endian
  std::uint64_t generation = 0;  ///< the first without it
};

/// What entries of the store are worth to its model, measured on a piece of the text with this
/// piece left out of the store; see *--calibrate* in build-datastore(1).
struct Calibration {
  std::uint64_t tokens = 0;  ///< of the piece
  double temperature = 1;    ///< of a distribution of their own: divides their scores
  double share = 0;          ///< its weight beside the model
  double joint_temperature =
      1;                  ///< in the model's softmax: divides them over the root of the width
  double joint_bias = 0;  ///< there: added to them, a log-weight
};

struct Manifest {
  std::uint64_t generation = 1;  ///< counts what was committed: building, additions, removals
  std::uint64_t rows = 0, width = 0, documents = 0;
  std::uint64_t vocabulary = 0;  ///< labels are below it
  Metric metric = Metric::ip;
  std::string index = "exact";             ///< or FAISS's factory string
  std::string model;                       ///< fingerprint
  std::string tokenizer;                   ///< fingerprint of its canonical JSON; empty: none
  shard::Chain digest;                     ///< of every row's XXH3-128 of (key, label)
  std::string documents_hash, index_hash;  ///< XXH3-128 of the files' bytes; of none: empty
  std::string keys_file = "keys.npy", values_file = "values.npy";
  std::string documents_file = "documents.npy";
  std::string index_file;              ///< empty: exact
  std::string places_file;             ///< of a store that leaves positions out; empty: it has all
  std::string places_hash;             ///< XXH3-128 of its elements
  std::string weights_file;            ///< how many entries each row stands for; empty: one each
  std::string weights_hash;            ///< XXH3-128 of its elements
  std::uint64_t merge_neighbours = 0;  ///< where rows have weights: --prune merge:K
  std::string projection_file;         ///< what made the keys of the model's; empty: they are these
  std::string projection_hash;         ///< XXH3-128 of its elements
  std::string names_file;              ///< of the documents; empty: they have none
  std::string names_hash;              ///< XXH3-128 of its bytes
  std::uint64_t model_width = 0;       ///< of the model's keys, where they are others
  double key_scale = 1;                ///< a power of 2 by which the model's keys were multiplied
  Recall recall;
  std::optional<Calibration> calibration = {};  ///< changes nothing that a search finds
  std::vector<Source> sources;
  std::vector<Receipt> removed;

  bool exact() const { return index == "exact"; }
  /// Each row is of the position behind the row before it, within a document.
  bool whole() const { return places_file.empty(); }
  bool weighted() const { return !weights_file.empty(); }
  bool projected() const { return !projection_file.empty(); }
  bool named() const { return !names_file.empty(); }
  bool scaled() const { return key_scale != 1; }
  /// Not every key of the text is there as the model gave it.
  bool reduced() const { return !whole() || projected() || weighted(); }
  /// Of queries: that of the model's keys.
  std::uint64_t query_width() const { return projected() ? model_width : width; }
  /// XXH3-128 of all that changes what a search finds: rows, their order and documents, model,
  /// metric, index.
  std::string fingerprint() const;
};

inline constexpr const char* kManifestName = "store.json";

core::OrderedJson to_json(const Receipt& receipt);
core::OrderedJson to_json(const SourcePart& part);
core::OrderedJson to_json(const Calibration& calibration);
core::OrderedJson to_json(const Manifest& manifest);
/// Nothing in it is trusted: names of files are a store's, sizes are bounded, and it carries a
/// hash of itself. Throws Error{bad_data} naming `origin`, or both versions.
Manifest manifest_from(const core::Json& json, const std::string& origin);

/// Throws Error{no_input} if the folder is no store, or not complete yet.
Manifest read_manifest(const std::string& folder);
/// Whole or not at all.
void write_manifest(const std::string& folder, const Manifest& manifest);

}  // namespace store
