#pragma once
// Merges shards, and splits them at document boundaries.
// Verifies whole shards.
// Reports the figures of a shard, or of several shards as one.

#include "core/options.h"
#include "shard/dataset.h"
#include "shard/writer.h"

namespace shard {

/// Appends the documents [first, last) of `data`. `progress` receives the number of elements done
/// so far.
void copy_documents(const Dataset& data, std::size_t first, std::size_t last, Writer& writer,
    const std::function<void(std::uint64_t)>& progress = {});

/// Writes all of `data` as one shard. If `data` consists of all parts of one command, the result
/// equals the shard that the command writes without parts. The bytes do not depend on `jobs`.
/// Throws Error{usage} if some shards are parts, but `data` is not exactly all parts of one
/// command.
void merge(const Dataset& data, core::ByteSink& out, int jobs,
    const std::function<void(std::uint64_t)>& progress = {});

/// A Cut says how to split; exactly one member is not 0.
struct Cut {
  std::uint64_t parts = 0;  ///< the number of parts, of about equal numbers of elements
  /// Documents per part (pairs, for a shard of pairs); the last part may have fewer.
  std::uint64_t documents = 0;
  /// Bytes of elements per part, as whole documents; a part has at least one document.
  std::uint64_t bytes = 0;
};

/// CutOptions holds the flags that make a Cut.
struct CutOptions {
  std::int64_t parts = 0, documents = 0, bytes = 0;
  void fields(core::FieldList& f);
  Cut cut() const;
};

/// Returns the end (one past the last document) of each part; a pair is never split. Throws
/// Error{usage} if there are fewer documents than parts, or unless exactly one member of `cut` is
/// set.
std::vector<std::size_t> part_ends(
    const Header& header, const Documents& documents, const Cut& cut);

/// A Part is a shard that split() wrote.
struct Part {
  std::string path;
  std::uint64_t elements = 0;
  std::size_t documents = 0;

  std::string summary() const;
};
/// Writes PREFIX00000.shard.zst, PREFIX00001.shard.zst, ..., each through core::Output, then calls
/// `done` for each in order. Throws Error{usage} as part_ends() does and if a file with the number
/// after the last part exists, Error{cannot_create}, Error{io}.
void split(const Dataset& data, const Cut& cut, const std::string& prefix, int jobs,
    const std::function<void(const Part&)>& done);

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
