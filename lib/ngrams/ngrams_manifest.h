#pragma once
// ngrams.json: what an index of n-grams holds, in which files. Renamed into place last, it is what
// makes an index. man/ngrams.5 has the format.
//
//   ngrams.json       this
//   tokenizer.json    the text's, where it has one
//   documents.npy     <u8: for each document the element after its last
//   text.N.npy        tokens of part N, behind each document (or what the part has of it) a mark,
//                     the number of types: |u1, <u2 or <u4, the narrowest that holds it
//   suffixes.N.npy    <u4: places of the text, ascending by what follows from there on
//   firsts.N.npy      <u4: for each token, and the mark, how many suffixes begin with a lower one
//   building.json     of an index that is not complete: its parts, and those that are done

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace ngrams {

/// A stretch of the text that is sorted by itself.
struct PartFacts {
  std::uint64_t begin = 0, end = 0;  ///< tokens of the text whose suffixes it has
  /// Tokens [end, until) stand behind them too where a document is longer than a part, so that
  /// what goes on across the cut is found.
  std::uint64_t until = 0;
  std::uint64_t document = 0;                         ///< the one that `begin` is of
  std::uint64_t marks = 0;                            ///< in its text
  std::string text_hash, suffixes_hash, firsts_hash;  ///< XXH3-128 of the elements; empty: not done

  std::uint64_t elements() const { return until - begin + marks; }
  bool done() const { return !text_hash.empty(); }
};

/// A shard of the text: no part has tokens of two.
struct TextShard {
  std::string data;  ///< fingerprint
  std::uint64_t tokens = 0;
};

struct Manifest {
  std::uint64_t vocabulary = 0;  ///< types; tokens are below it
  std::uint64_t tokens = 0, documents = 0;
  std::string data;       ///< fingerprint of the shards
  std::string tokenizer;  ///< fingerprint of its canonical JSON; empty: none
  std::string documents_hash;
  std::vector<PartFacts> parts;
  std::vector<TextShard> shards;  ///< in order
};

inline constexpr const char *kManifestName = "ngrams.json", *kBuildingName = "building.json",
                            *kTokenizerName = "tokenizer.json", *kDocumentsName = "documents.npy";
std::string text_name(std::size_t part);
std::string suffixes_name(std::size_t part);
std::string firsts_name(std::size_t part);
/// A name that only an index has: one of these.
bool is_index_file(std::string_view name);

core::OrderedJson to_json(const Manifest& manifest);
/// Nothing in it is trusted: numbers are bounded and agree with each other, and it carries a hash
/// of itself. `complete`: all parts must be done. Throws Error{bad_data} naming `origin`, or both
/// versions.
Manifest manifest_from(const core::Json& json, const std::string& origin, bool complete = true);

/// Throws Error{no_input} if the folder is no index, or not complete yet.
Manifest read_manifest(const std::string& folder);

}  // namespace ngrams
