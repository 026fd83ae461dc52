#pragma once
// Builds an n-gram index of a text, part by part. The work can be interrupted at any moment and
// resumed: once the files of a part are complete, building.json records it; ngrams.json is written
// last.

#include "core/options.h"
#include "ngrams/ngrams_manifest.h"
#include "shard/dataset.h"

namespace ngrams {

/// A Cut says how a text is divided into parts.
struct Cut {
  std::uint64_t elements = 0;  ///< most elements of a part: tokens and marks
  /// Tokens after the cut that both parts contain, if a document is longer than a part. N-grams of
  /// up to overlap + 1 tokens are counted as if there were no cut.
  std::uint64_t overlap = 4096;
};

/// BuildOptions holds the memory limit.
struct BuildOptions {
  /// Bytes for sorting, shared by all threads.
  std::int64_t memory = std::int64_t{2} << 30;
  void fields(core::FieldList& f);
  /// Returns the cut for a vocabulary size and a number of threads. Throws Error{usage} for too
  /// little memory.
  Cut cut(std::uint64_t vocabulary, std::int64_t jobs) const;
};

/// Plans the parts, without hashes, of documents that end at `ends`. A part has whole documents of
/// one shard as long as they fit; a longer document is cut. `shards` is the number of documents of
/// each shard; empty: one shard has all.
std::vector<PartFacts> plan_parts(const std::vector<std::uint64_t>& ends, const Cut& cut,
    const std::vector<std::uint64_t>& shards = {});

/// A BuildWatch receives the number of tokens sorted and written; it may throw to stop.
using BuildWatch = std::function<void(std::uint64_t tokens)>;

/// Built is the result of build().
struct Built {
  Manifest manifest;
  bool was_complete = false;  ///< there was nothing to do
};

/// Begins an index in `folder`, which is created if necessary, or resumes one of an equal text with
/// the existing division into parts; sorts `jobs` parts at a time. Throws Error{bad_data} for a
/// kind other than tokens, a text without tokens, and a token outside the vocabulary; Error{usage}
/// if the folder has an index, even unfinished, of another text; Error{cannot_create} for a folder
/// with other files, or one that another process is writing.
Built build(const shard::Dataset& data, const std::string& folder, const Cut& cut,
    std::int64_t jobs, const BuildWatch& watch = {});

/// Returns the report of an index's contents.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);

}  // namespace ngrams
