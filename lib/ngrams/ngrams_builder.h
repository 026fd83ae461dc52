#pragma once
// Makes an index of n-grams of a text, part by part, so that it can be stopped at any moment and
// goes on: the files of a part are whole, then building.json says that it is done; ngrams.json
// comes last.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/options.h"
#include "ngrams/ngrams_manifest.h"
#include "shard/dataset.h"

namespace ngrams {

/// How a text is cut into parts.
struct Cut {
  std::uint64_t elements = 0;  ///< most of a part: tokens and marks
  /// Tokens behind the cut in a document that is longer than a part, which both parts have: n-grams
  /// up to one more are counted as if there were no cut.
  std::uint64_t overlap = 4096;
};

struct BuildOptions {
  std::int64_t memory = std::int64_t{2} << 30;  ///< bytes for sorting, of all threads together
  void fields(core::FieldList& f);
  /// Of a text of so many types, with so many threads. Throws Error{usage} for too little memory.
  Cut cut(std::uint64_t vocabulary, std::int64_t jobs) const;
};

/// The parts of documents that end at these elements, without hashes: whole documents of a shard
/// while they fit; a longer one is cut. `shards`: how many documents each has; none: all are of
/// one.
std::vector<PartFacts> plan_parts(const std::vector<std::uint64_t>& ends, const Cut& cut,
                                  const std::vector<std::uint64_t>& shards = {});

/// Called with tokens that are sorted and written; may throw to stop.
using BuildWatch = std::function<void(std::uint64_t tokens)>;

struct Built {
  Manifest manifest;
  bool was_complete = false;  ///< there was nothing to do
};

/// Begins an index in `folder` (made if it is not there), or goes on with one of the same text,
/// whose parts stay as they were cut; sorts `jobs` parts at a time. Throws Error{bad_data} for
/// another kind than tokens, for a text without tokens and for a token outside its vocabulary,
/// Error{usage} if the folder has another text's index, or the beginning of one,
/// Error{cannot_create} for a folder of other things, or one that another process is filling.
Built build(const shard::Dataset& data, const std::string& folder, const Cut& cut,
            std::int64_t jobs, const BuildWatch& watch = {});

/// What a folder holds.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);

}  // namespace ngrams
