#pragma once
// Indices of n-grams as they are asked: where a sequence of tokens stands, and what follows it.
// Sums go over the parts of all folders.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ngrams/ngrams_manifest.h"
#include "ngrams/sorted_part.h"
#include "shard/dataset.h"

namespace ngrams {

/// A folder that build-ngrams made, mapped. Thread safe.
class Folder {
 public:
  /// Throws Error{no_input} if it is no index or not complete, Error{bad_data} where it is damaged
  /// so that it shows at once.
  explicit Folder(const std::string& path);

  const std::string& name() const { return name_; }
  const Manifest& manifest() const { return manifest_; }
  /// tokenizer.json in canonical form; empty: none.
  const std::string& tokenizer() const { return tokenizer_; }
  const std::vector<SortedPart>& parts() const { return parts_; }
  /// Element of the text at which a document begins.
  std::uint64_t begin_of(std::uint64_t document) const;
  /// Whether a part is of a text, or a shard, with one of these fingerprints.
  bool is_of(const SortedPart& part, const shard::Fingerprints& texts) const;
  /// The document that the place of a part's text is of.
  std::uint64_t document_of(const SortedPart& part, std::uint64_t place) const;
  /// Where a document, or what the part has of it, begins in the part's text.
  std::uint64_t begin_in(const SortedPart& part, std::uint64_t document) const;

  /// Every byte. Throws Error{bad_data} naming the file.
  void verify() const;

 private:
  std::string name_;
  Manifest manifest_;
  std::string tokenizer_;
  MappedArray documents_;
  std::span<const std::uint64_t> ends_;  // of documents
  std::vector<SortedPart> parts_;
};

/// Where tokens stand, in each part: ranks of suffixes that begin with them.
struct Match {
  std::uint64_t length = 0;  ///< tokens
  std::vector<Ranks> ranks;  ///< one a part, some of them empty
};

/// What follows a Match within documents.
struct Followers {
  std::uint64_t count = 0;
  bool one = false;  ///< it is always the same token
};

/// Where a suffix stands.
struct Place {
  std::size_t folder = 0;
  std::uint64_t document = 0;
  std::uint64_t offset = 0;   ///< tokens from the document's beginning
  std::uint64_t element = 0;  ///< of all the folder's text
};

/// Thread safe.
class Index {
 public:
  /// Throws as Folder does, Error{bad_data} for folders of different tokenizers, Error{usage} for
  /// two that hold the same text, whose n-grams would count twice.
  explicit Index(const std::vector<std::string>& folders);
  explicit Index(std::vector<std::shared_ptr<const Folder>> folders);

  /// Types; 0 where there are no folders.
  std::uint64_t vocabulary() const;
  const std::vector<std::shared_ptr<const Folder>>& folders() const { return folders_; }
  const std::vector<const SortedPart*>& parts() const { return parts_; }
  std::uint64_t tokens() const;

  Match find(std::span<const std::uint32_t> tokens) const;
  static std::uint64_t count(const Match& match);
  Followers followers(const Match& match) const;
  /// How often this token follows.
  std::uint64_t count(const Match& match, std::uint32_t token) const;

  /// The n-th of the suffixes of a match, in the order of parts and ranks.
  Place place(const Match& match, std::uint64_t n) const;
  /// Tokens [from, to) counted from the n-th suffix's beginning, as far as they are of its document
  /// and part; from may be below 0.
  std::vector<std::uint32_t> around(const Match& match, std::uint64_t n, std::int64_t from,
                                    std::int64_t to) const;

  /// Whether parts are of a text, or a shard, with one of these fingerprints.
  bool holds(const shard::Fingerprints& texts) const;
  /// The parts that are not.
  std::shared_ptr<const Index> without(const shard::Fingerprints& texts) const;
  /// The beginnings of the texts' fingerprints, with + between them.
  std::string signature() const;

 private:
  struct Found {
    std::size_t part;
    std::uint64_t rank;
  };
  Found nth(const Match& match, std::uint64_t n) const;
  std::vector<std::shared_ptr<const Folder>> folders_;
  std::vector<const SortedPart*> parts_;
  std::vector<std::size_t> folder_of_;  // of each part
};

}  // namespace ngrams
