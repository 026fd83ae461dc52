#pragma once
// Reads and writes ngrams.json, which lists the contents and the files of an n-gram index. It is
// renamed into place last, which completes the index. ngrams(5) specifies the format.
//
//   ngrams.json       this file
//   tokenizer.json    the text's tokenizer, if it has one
//   documents.npy     <u8: the end of each document, in elements
//   names.txt         the documents' names, one per line, if the text has any
//   text.N.npy        tokens of part N, with a mark (the number of types) after each document or
//                     piece of one: |u1, <u2 or <u4, the narrowest that holds the mark
//   suffixes.N.npy    <u4: positions in the text, sorted by the suffixes that begin there
//   firsts.N.npy      <u4: for each token, and the mark, how many suffixes begin with a lower one
//   building.json     of an incomplete index: its parts and which of them are complete

#include "core/json.h"

namespace ngrams {

/// PartFacts describes a part of the text, which is sorted separately.
struct PartFacts {
  std::uint64_t begin = 0, end = 0;  ///< tokens of the text whose suffixes it has
  /// The part's text extends to `until` if a document is longer than a part; the tokens [end,
  /// until) follow the cut, so that matches across it are found.
  std::uint64_t until = 0;
  std::uint64_t document = 0;  ///< the document that contains `begin`
  std::uint64_t marks = 0;     ///< number of marks in its text
  /// XXH3-128 of the elements; empty: not complete.
  std::string text_hash, suffixes_hash, firsts_hash;

  std::uint64_t elements() const { return until - begin + marks; }
  bool done() const { return !text_hash.empty(); }
};

/// A TextShard is a shard of the text; no part has tokens of two shards.
struct TextShard {
  std::string data;  ///< fingerprint
  std::uint64_t tokens = 0;
};

/// A Manifest is the contents of ngrams.json.
struct Manifest {
  std::uint64_t vocabulary = 0;  ///< number of types; exclusive upper bound of tokens
  std::uint64_t tokens = 0, documents = 0;
  std::string data;       ///< fingerprint of the shards
  std::string tokenizer;  ///< fingerprint of its canonical JSON; empty: none
  std::string documents_hash;
  std::string names_hash;  ///< XXH3-128 of names.txt; empty: none
  std::vector<PartFacts> parts;
  std::vector<TextShard> shards;  ///< in order
};

inline constexpr const char *kManifestName = "ngrams.json", *kBuildingName = "building.json",
                            *kTokenizerName = "tokenizer.json", *kDocumentsName = "documents.npy",
                            *kNamesName = "names.txt";
inline std::string text_name(std::size_t part) { return fmt::format("text.{}.npy", part); }
inline std::string suffixes_name(std::size_t part) { return fmt::format("suffixes.{}.npy", part); }
inline std::string firsts_name(std::size_t part) { return fmt::format("firsts.{}.npy", part); }
/// Returns true for a file name that only an index has: one of those above.
bool is_index_file(std::string_view name);

core::OrderedJson to_json(const Manifest& manifest);
/// Parses a manifest, which is untrusted: numbers are bounded and must be consistent, and it must
/// match its own hash. `complete` requires that all parts are complete. Throws Error{bad_data},
/// naming `origin`, or both versions.
Manifest manifest_from(const core::Json& json, const std::string& origin, bool complete = true);

/// Reads ngrams.json. Throws Error{no_input} if the folder is not an index or is incomplete.
Manifest read_manifest(const std::string& folder);

}  // namespace ngrams
