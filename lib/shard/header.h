#pragma once
// Describes a shard: its kind, the type of its elements, its documents and its provenance. shard(5)
// specifies the format byte by byte.
// Reads and writes the header's JSON: {"dtype", "kind", "vocabulary", "width"}; for an order also
// {"data_fingerprint", "unit", "unit_length"}; for marked tokens also {"marked": true}. Its keys
// are sorted and it has no spaces. It does not include the tokenizer.
// Computes fingerprints of data. Equal data has equal fingerprints, however it is split into
// shards.

#include "core/hash.h"
#include "core/json.h"

namespace shard {

/// Kind is what the elements of a shard mean.
enum class Kind {
  tokens,  ///< ids of one text stream
  /// Numbers of units (segments, documents, pairs) of a data set, in the order of use.
  order,
  vectors,  ///< rows of `width` float32
  pairs,    ///< ids: source, target, source, target, ...; two documents per pair
};
/// Dtype is the type of an element.
enum class Dtype { u8, u16, u32, u64, f32 };

std::string_view name_of(Kind kind);
std::string_view name_of(Dtype dtype);
/// Returns the size of one element in bytes.
std::size_t size_of(Dtype dtype);

/// Returns the smallest type for ids: u8 up to 256 types, u16 up to 65,536, else u32.
Dtype dtype_for(std::uint64_t vocabulary);

/// A Header describes the elements. An element is one number of type dtype; for vectors it is one
/// coordinate, so elements = rows * width.
struct Header {
  Kind kind = Kind::tokens;
  Dtype dtype = Dtype::u16;
  std::uint32_t width = 1;  ///< vectors: coordinates per row; otherwise 1
  /// Exclusive upper bound of all elements: the number of the tokenizer's types, or of the units of
  /// an order; 0 for vectors.
  std::uint64_t vocabulary = 0;
  /// The whole tokenizer.json in canonical form (core::dump of a core::Json); empty: no tokenizer.
  std::string tokenizer;
  /// tokens: Documents::marks says which elements are learned.
  bool marked = false;
  std::string unit;               ///< order: "segment", "document" or "pair"; else empty
  std::uint64_t unit_length = 0;  ///< order of segments: tokens per segment; else 0
  std::string data_fingerprint;   ///< order: Dataset::fingerprint().hex() of the data it orders

  bool operator==(const Header&) const = default;
};

/// A Span is the range of elements [begin, end).
struct Span {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

/// Documents lists a shard's documents in order; they cover all elements. A shard without any
/// end_document() is one document. A pair has two entries, source then target.
struct Documents {
  std::vector<std::uint64_t> end;    ///< offset in elements of the document's end
  std::vector<std::uint64_t> bytes;  ///< of the document's source text
  std::vector<std::uint64_t> words;  ///< of the document's source text
  /// Names in UTF-8 without newlines; an empty name means none. The vector has one entry per
  /// document, or is empty.
  std::vector<std::string> names = {};
  /// Header::marked: the ranges of elements to be learned, ascending, not empty, and each within
  /// one document. All other elements are only context.
  std::vector<Span> marks = {};
  std::size_t size() const { return end.size(); }
  /// Returns the document's name, or an empty text.
  std::string_view name(std::size_t document) const {
    return names.empty() ? std::string_view() : std::string_view(names[document]);
  }
  /// Appends the documents of `later`, whose offsets count from 0; this object has `elements`
  /// elements.
  void append(const Documents& later, std::uint64_t elements);
  bool operator==(const Documents&) const = default;
};

/// Returns the parts of the marks within [begin, end), as offsets from `begin`.
std::vector<Span> marks_within(const Documents& documents, std::uint64_t begin, std::uint64_t end);

/// A Trailer is the metadata after the elements.
struct Trailer {
  std::uint64_t elements = 0;
  Documents documents;
  std::vector<core::OrderedJson> provenance;
  core::Digest fingerprint;
  core::Digest file_hash;  ///< XXH3-128 of all bytes of the file before the trailer
};

/// Returns a provenance entry: the program and its version, the options that affect the output's
/// bytes, the fingerprints of the inputs. It has no times, hosts, paths or thread counts, so that
/// equal inputs give equal bytes.
core::OrderedJson provenance_entry(
    std::string_view program, core::OrderedJson options, const std::vector<core::Digest>& inputs);

/// Throws Error{bad_data}, naming `name` and both kinds, unless the header's kind is one of
/// `kinds`.
void expect_kind(const Header& header, const std::vector<Kind>& kinds, const std::string& name);

/// Returns the header as JSON.
std::string header_json(const Header& header);
/// Parses a header. Throws Error{bad_data} for anything that header_json() does not write.
Header header_from_json(std::string_view text, const std::string& name);
/// Throws Error{bad_data} if the fields contradict each other.
void check_header(const Header& header, const std::string& name);

/// A Chain is a composable digest of a sequence of digests: the chain of a concatenation follows
/// from the chains of its parts. It is a polynomial in a fixed base over the integers modulo 2^127
/// - 1 (as in Karp & Rabin 1987) whose coefficients are the digests.
class Chain {
 public:
  /// Appends one digest to the sequence.
  void append(const core::Digest& digest);
  /// Appends the sequence of `next`, which has `n` members.
  void append_chain(const Chain& next, std::uint64_t n);
  core::Digest value() const { return value_; }
  static Chain from(const core::Digest& value);
  /// Reads a chain from the member "digest". Throws Error{bad_data}, naming `origin`, if it is
  /// missing.
  static Chain read(const core::Json& json, const std::string& origin);
  bool operator==(const Chain&) const = default;

 private:
  core::Digest value_;
};

/// Content summarises documents. The Content of a merged shard is that of its parts, appended.
struct Content {
  std::uint64_t documents = 0;
  std::uint64_t elements = 0;
  /// The chain of each document's XXH3-128 of (elements, source bytes, source words, begins and
  /// ends of marks).
  Chain boundaries;
  Chain data;  ///< chain of each document's XXH3-128 of its stored elements

  void append(const core::Digest& document_data, std::uint64_t n_elements,
      std::uint64_t source_bytes, std::uint64_t source_words, std::span<const Span> marks = {});
  void append(const Content& next);
  bool operator==(const Content&) const = default;
};

/// Returns the XXH3-128 of the digests of the kind (the header's JSON), tokenizer, boundaries and
/// data. Provenance and compression are not included.
core::Digest fingerprint(const Header& header, const Content& content);

}  // namespace shard
