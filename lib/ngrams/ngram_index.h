#pragma once
// Searches n-gram indices: where a sequence of tokens occurs, and what follows it. Counts are sums
// over the parts of all folders.

#include "ngrams/sorted_part.h"
#include "shard/dataset.h"

namespace ngrams {

/// A Folder is a mapped folder of build-ngrams. Thread safe.
class Folder {
 public:
  /// Opens a folder. Throws Error{no_input} if it is not an index or is incomplete, and
  /// Error{bad_data} for damage that is visible without reading everything.
  explicit Folder(const std::string& path);

  const std::string& name() const { return name_; }
  const Manifest& manifest() const { return manifest_; }
  /// Returns the tokenizer.json in canonical form; empty if there is none.
  const std::string& tokenizer() const { return tokenizer_; }
  const std::vector<SortedPart>& parts() const { return parts_; }
  /// Returns a document's name, or an empty text.
  std::string_view name_of(std::uint64_t document) const {
    return names_.empty() ? std::string_view() : std::string_view(names_.at(document));
  }
  /// Returns the offset of a document's first element in the text.
  std::uint64_t begin_of(std::uint64_t document) const;
  /// Returns true if a part belongs to a text, or a shard, with one of these fingerprints.
  bool is_of(const SortedPart& part, const shard::Fingerprints& texts) const;
  /// Returns the document that contains a position of a part's text.
  std::uint64_t document_of(const SortedPart& part, std::uint64_t place) const;
  /// Returns the position in the part's text at which a document, or the part's piece of it,
  /// begins.
  std::uint64_t begin_in(const SortedPart& part, std::uint64_t document) const;

  /// Checks every byte. Throws Error{bad_data}, naming the file.
  void verify() const;

 private:
  std::string name_;
  Manifest manifest_;
  std::string tokenizer_;
  MappedArray documents_;
  std::span<const std::uint64_t> ends_;  // ends of the documents
  std::vector<std::string> names_;       // of the documents; empty: they have none
  std::vector<SortedPart> parts_;
};

/// A Match holds the occurrences of a token sequence in each part, as ranks of the suffixes that
/// begin with it.
struct Match {
  std::uint64_t length = 0;  ///< tokens
  std::vector<Ranks> ranks;  ///< one per part; may be empty
};

/// Followers summarises what follows a Match within documents.
struct Followers {
  std::uint64_t count = 0;
  bool one = false;  ///< all followers are one token
};

/// A SuffixPosition is the position of a suffix.
struct SuffixPosition {
  std::size_t folder = 0;
  std::uint64_t document = 0;
  std::uint64_t offset = 0;   ///< tokens from the beginning of the document
  std::uint64_t element = 0;  ///< offset in the folder's whole text
};

/// An Index searches several folders as one. Thread safe.
class Index {
 public:
  /// Opens the folders. Throws as Folder does, Error{bad_data} for folders with different
  /// tokenizers, and Error{usage} for two that hold one text, whose n-grams would count twice.
  explicit Index(const std::vector<std::string>& folders);
  explicit Index(std::vector<std::shared_ptr<const Folder>> folders);

  /// Returns the number of token types; 0 without folders.
  std::uint64_t vocabulary() const;
  const std::vector<std::shared_ptr<const Folder>>& folders() const { return folders_; }
  const std::vector<const SortedPart*>& parts() const { return parts_; }
  std::uint64_t tokens() const;

  Match find(std::span<const std::uint32_t> tokens) const;
  static std::uint64_t count(const Match& match);
  Followers followers(const Match& match) const;
  /// Returns how often `token` follows the match.
  std::uint64_t count(const Match& match, std::uint32_t token) const;

  /// Returns the position of the n-th suffix of a match, in the order of parts and ranks.
  SuffixPosition place(const Match& match, std::uint64_t n) const;
  /// Returns the tokens [from, to) relative to the beginning of the n-th suffix, limited to its
  /// document and part; from may be negative.
  std::vector<std::uint32_t> around(
      const Match& match, std::uint64_t n, std::int64_t from, std::int64_t to) const;

  /// Returns true if a part belongs to a text, or a shard, with one of these fingerprints.
  bool holds(const shard::Fingerprints& texts) const;
  /// Returns an index of the parts that do not.
  std::shared_ptr<const Index> without(const shard::Fingerprints& texts) const;
  /// Returns the prefixes of the texts' fingerprints, joined by +.
  std::string signature() const;

 private:
  struct Occurrence {
    std::size_t part;
    std::uint64_t rank;
  };
  Occurrence nth(const Match& match, std::uint64_t n) const;
  std::vector<std::shared_ptr<const Folder>> folders_;
  std::vector<const SortedPart*> parts_;
  std::vector<std::size_t> folder_of_;  // folder of each part
};

}  // namespace ngrams
