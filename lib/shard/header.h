#pragma once
// What a shard is: its kind, the type of its elements, its documents, where it comes from.
// man/shard.5 has the format byte by byte.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace shard {

enum class Kind {
  tokens,   ///< ids of one text stream
  order,    ///< numbers of units (segments, documents, pairs) of a data set, in the order to use
  vectors,  ///< rows of `width` float32
  pairs,    ///< ids: source, target, source, target, ...; two documents a pair
};
enum class Dtype { u8, u16, u32, u64, f32 };

std::string_view name_of(Kind kind);
std::string_view name_of(Dtype dtype);
/// Bytes of one element.
std::size_t size_of(Dtype dtype);

/// u8 up to 256 types, u16 up to 65,536, else u32.
Dtype dtype_for(std::uint64_t vocabulary);

/// An element is one number of type dtype (of vectors: one coordinate, so elements = rows * width).
struct Header {
  Kind kind = Kind::tokens;
  Dtype dtype = Dtype::u16;
  std::uint32_t width = 1;  ///< vectors: coordinates a row; 1 otherwise
  /// Every element is below it: types of the tokenizer; order: how many units there are; 0 of
  /// vectors.
  std::uint64_t vocabulary = 0;
  /// The whole tokenizer.json in canonical form (core::dump of a core::Json); empty if none.
  std::string tokenizer;
  /// tokens: the documents say which elements are to be learned, Documents::marks.
  bool marked = false;
  std::string unit;               ///< order: "segment", "document" or "pair"; else empty
  std::uint64_t unit_length = 0;  ///< order of segments: tokens a segment; else 0
  std::string data_fingerprint;   ///< order: Dataset::fingerprint().hex() of the data it orders

  bool operator==(const Header&) const = default;
};

/// Elements [begin, end).
struct Span {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

/// Documents of a shard, in order; they cover all elements (without any end_document() a shard is
/// one document). pairs: two entries a pair, source then target.
struct Documents {
  std::vector<std::uint64_t> end;    ///< element offset one past the document
  std::vector<std::uint64_t> bytes;  ///< of the document's source text
  std::vector<std::uint64_t> words;  ///< of the document's source text
  /// UTF-8 without newlines, empty: none; of all documents, or nothing at all.
  std::vector<std::string> names = {};
  /// Header::marked: the elements to be learned, ascending, none empty, none past the document's
  /// end; the others are context alone.
  std::vector<Span> marks = {};
  std::size_t size() const { return end.size(); }
  std::string_view name(std::size_t document) const {
    return names.empty() ? std::string_view() : std::string_view(names[document]);
  }
  /// Those of `later`, which has its own count of elements, behind these, which are `elements`.
  void append(const Documents& later, std::uint64_t elements);
  bool operator==(const Documents&) const = default;
};

/// What of the marks lies in [begin, end), counted from `begin`.
std::vector<Span> marks_within(const Documents& documents, std::uint64_t begin, std::uint64_t end);

/// What stands behind the elements.
struct Trailer {
  std::uint64_t elements = 0;
  Documents documents;
  std::vector<core::OrderedJson> provenance;
  core::Digest fingerprint;
  core::Digest file_hash;  ///< XXH3-128 of every byte of the file before the trailer
};

/// One entry of a provenance: program and its version, the options that change bytes, fingerprints
/// of the inputs. No times, hosts, paths or thread counts: equal inputs give equal bytes.
core::OrderedJson provenance_entry(std::string_view program, core::OrderedJson options,
                                   const std::vector<core::Digest>& inputs);

/// Throws Error{bad_data} naming `name` and both kinds unless `header` is of one of `kinds`.
void expect_kind(const Header& header, const std::vector<Kind>& kinds, const std::string& name);

}  // namespace shard
