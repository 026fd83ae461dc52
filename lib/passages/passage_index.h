#pragma once
// An index of a text's passages for BM25, which includes the text. bm25-search writes and searches
// it, and --retrieve reads it. It is a file of arrays (array_pack.h), "TESSBM25", version 1:
//
//   tokens       u8, u16 or u32, the narrowest that holds the vocabulary: all documents in sequence
//   documents    u64: the end of each document, in tokens
//   hashes       u64: for each document the low half of XXH3-128 of its tokens as u32
//   term_bytes   the terms, concatenated in the order of their numbers
//   term_ends    u64: the end of each term
//   term_order   u32: the numbers of the terms, sorted by their bytes
//   idf, row     f32, u32: for each term (bm25_index.h, TermKinds)
//   tokenizer    tokenizer.json
//   begin.N, units.N, impacts.N, rows.N
//                BlockView (bm25_index.h) of passages [16384 N, 16384 (N + 1))
//
// Its facts are format, version, vocabulary, end_of_document (-1: none), passage (tokens; 0: a
// document), k1, b, data (fingerprint of the shards).
// Splits documents into passages of a fixed number of tokens.
// Answers queries with passages: the work of bm25-search find.
// Writes an index of passages (passage_index.h) from shards.

#include "core/options.h"
#include "passages/array_pack.h"
#include "passages/bm25_index.h"
#include "text/tokenizer/tokenizer.h"

namespace passages {

/// PassageCuts numbers the passages consecutively. No passage crosses the end of a document; the
/// last passage of a document may be shorter. An empty document has none.
class PassageCuts {
 public:
  struct Place {
    std::uint64_t document;
    std::uint64_t begin, end;  ///< elements of the whole text
  };

  PassageCuts() = default;
  /// `ends` are the ends of the documents, ascending, and must outlive this object. A `length` of 0
  /// makes each document one passage.
  PassageCuts(std::span<const std::uint64_t> ends, std::uint64_t length);
  std::uint64_t size() const { return first_.back(); }
  /// Returns the position of passage `number`, which is below size().
  Place place(std::uint64_t number) const;
  /// Returns the passages [first, second) of a document.
  std::pair<std::uint64_t, std::uint64_t> of(std::uint64_t document) const {
    return {first_[document], first_[document + 1]};
  }
  std::uint64_t begin_of(std::uint64_t document) const {
    return document == 0 ? 0 : ends_[document - 1];
  }

 private:
  std::span<const std::uint64_t> ends_;
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> first_ = {0};  // first passage of each document, and the end
};

/// A PassageIndex is an open index. Const calls are thread safe.
class PassageIndex {
 public:
  /// Maps the file and checks all of it. Throws Error{no_input}, and Error{bad_data} for a corrupt
  /// file.
  explicit PassageIndex(const std::string& path);
  /// `bytes` are aligned to 64 bytes and outlive the index.
  PassageIndex(std::span<const std::byte> bytes, const std::string& name);

  const std::string& name() const { return reader_->name(); }
  /// Returns the number of passages.
  std::uint32_t size() const { return static_cast<std::uint32_t>(cuts_.size()); }
  std::uint64_t tokens() const { return n_tokens_; }
  std::uint64_t documents() const { return ends_.size(); }
  std::uint32_t terms() const { return static_cast<std::uint32_t>(idf_.size()); }
  std::uint64_t vocabulary() const { return vocabulary_; }
  std::uint64_t passage_length() const { return passage_; }
  double k1() const { return k1_; }
  double b() const { return b_; }
  const std::string& data() const { return data_; }  ///< fingerprint
  const std::string& tokenizer_json() const { return tokenizer_json_; }
  const text::TokenizerPtr& tokenizer() const { return tokenizer_; }
  const PassageCuts& cuts() const { return cuts_; }

  /// Returns at most `most` tokens of a passage, without the end-of-document token.
  std::vector<std::uint32_t> passage(std::uint32_t number, std::uint64_t most = ~0ULL) const;
  /// Returns the text of a passage.
  std::string text(std::uint32_t number) const;
  /// Returns the passages of all documents that have exactly these tokens.
  std::vector<UnitRange> same_document(std::span<const std::uint32_t> tokens) const;

  std::optional<std::uint32_t> end_of_document() const { return end_of_document_; }
  /// Returns true for a token that text does not encode to.
  bool is_special(std::uint32_t id) const;
  std::optional<std::uint32_t> term(std::string_view text) const;
  /// Returns the idf of a term, which no passage may have.
  double idf(std::string_view text) const {
    const auto number = term(text);
    return number ? static_cast<double>(idf_[*number]) : std::log1p((size() + 0.5) / 0.5);
  }

  /// Returns the best passages for each query; see BlockSearcher.
  Hits search(std::span<const Bm25Query> queries, std::uint32_t top, int jobs = 1) const;
  BlockSearcher searcher(std::uint32_t top) const { return {idf_, row_, top}; }
  std::span<const BlockView> blocks() const { return blocks_; }

 private:
  PassageIndex(core::MappedFile file, std::span<const std::byte> bytes, const std::string& name);
  void read_facts();
  void read_text();
  void read_terms();
  void read_blocks();
  std::uint32_t token(std::uint64_t at) const;
  std::string_view term_text(std::uint32_t number) const;
  [[noreturn]] void damaged(const char* what) const;

  core::MappedFile file_;
  std::unique_ptr<const PackReader> reader_;
  std::uint64_t vocabulary_ = 0, passage_ = 0, n_tokens_ = 0;
  double k1_ = 0, b_ = 0;
  std::string data_, tokenizer_json_;
  std::optional<std::uint32_t> end_of_document_;
  text::TokenizerPtr tokenizer_;
  std::span<const std::byte> tokens_;
  std::size_t token_bytes_ = 0;
  std::span<const std::uint64_t> ends_, hashes_, term_ends_;
  std::span<const char> term_bytes_;
  std::span<const std::uint32_t> term_order_, row_;
  std::span<const float> idf_;
  PassageCuts cuts_;
  std::vector<BlockView> blocks_;
  std::vector<std::uint32_t> by_hash_;  // documents, sorted by hash
};

/// A PassageQueries converts queries to terms of an index. It caches words; each thread needs its
/// own.
class PassageQueries {
 public:
  /// Prepares queries for `index`, which must outlive this object.
  explicit PassageQueries(const PassageIndex& index);
  ~PassageQueries();
  PassageQueries(PassageQueries&&) noexcept;

  /// Returns the terms of a text that the index has, by number, with their counts.
  std::vector<TermCount> terms_of(std::string_view text);
  /// Returns the terms of the text of the tokens, without special tokens. Throws Error{bad_data}
  /// for an invalid token.
  std::vector<TermCount> terms_of(std::span<const std::uint32_t> tokens);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// FindOptions says which queries to answer from which index.
struct FindOptions {
  std::vector<std::string> files;
  std::string index;
  std::int64_t top = 10;
  bool ids = false;
  void fields(core::FieldList& f);
};

/// Answers each line of the files with one JSON line per hit, best first: query (from 0), rank
/// (from 1), score, passage, document, offset (of the passage in its document) and length in
/// tokens, and text. Batches the queries that are already available. Calls `written` whenever all
/// queries read so far are answered. Throws Error{bad_data} for invalid --ids. Returns the number
/// of queries.
std::uint64_t find_passages(const PassageIndex& index, const FindOptions& options, int jobs,
    core::ByteSink& out, const std::function<void(std::uint64_t)>& written);

inline constexpr const char* kPassageFormatName = "tessera-bm25";
inline const PackFormat kPassageFormat{"TESSBM25", 1, "an index of passages", "bm25-search build"};

/// PassageOptions holds the parameters of an index.
struct PassageOptions {
  std::int64_t passage = 0;  ///< tokens; 0: each document is a passage
  double k1 = 0.9, b = 0.4;
  std::int64_t buffer_size = std::int64_t{2} << 30;
  void fields(core::FieldList& f);
};

/// Writes the index to `out`, without committing it. The bytes do not depend on `jobs`. `progress`
/// receives the number of passages done. Throws as open_packing() does, and Error{bad_data} for a
/// text without terms.
void write_passages(const std::vector<std::string>& files, const PassageOptions& options, int jobs,
    const std::function<void(std::uint64_t)>& progress, core::ByteSink& out);

/// Describes an index: index, passages, documents, tokens, terms, passage, k1, b, bytes, data.
core::OrderedJson describe(const PassageIndex& index);

}  // namespace passages
