#pragma once
// Verifies whole shards.
// Reports the figures of a shard, or of several shards as one.

#include "shard/dataset.h"

namespace shard {

/// Reads all of the shard at `path` ("-": stdin), throws the first error found in it, and otherwise
/// returns its trailer. For a regular file, recomputes the fingerprint from the elements. For a
/// pipe, whose document boundaries follow the elements, checks the hash of the bytes instead.
Trailer verify(const std::string& path);

/// A Verdict is the result of verify() for one file.
struct Verdict {
  std::string path;
  Trailer trailer;    ///< set if the file is intact
  std::string error;  ///< the error; empty: none

  bool ok() const { return error.empty(); }
  /// Returns {"file", "ok"}, then "elements" and "fingerprint", or "error".
  core::OrderedJson json() const;
  std::string line() const;  ///< returns json() as a readable line
};
/// Verifies one file. Throws only errors that are not the shard's fault: Error{no_input},
/// Error{io}.
Verdict judge(const std::string& path);
/// Verifies each file and passes its Verdict to `found`. Returns the first error and the number of
/// further corrupt files, or an empty text if all are intact.
std::string judge(
    const std::vector<std::string>& paths, const std::function<void(const Verdict&)>& found);

/// Returns the report of `shard info`: kind, type, sizes, documents, bytes and words of the source,
/// fingerprints. `path` is reported as the file's name; a tokenizer is reported by its
/// "model"."type" in tokenizer.json.
core::OrderedJson describe(const std::string& path, const Dataset& data);
/// Returns one line per provenance entry, which says how the shard was made.
std::string made_by(const Dataset& data);

}  // namespace shard
