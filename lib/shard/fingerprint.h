#pragma once
// Fingerprints of data: equal for equal data, however it is cut into shards.

#include <cstdint>
#include <span>

#include "core/hash.h"
#include "core/json.h"
#include "shard/header.h"

namespace shard {

/// A digest of a sequence of digests that composes: append(a), append(b) equals then(digest of the
/// sequence a) with that of b. A polynomial in a fixed base over the integers modulo 2^127 - 1
/// (as in Karp & Rabin 1987), its coefficients the digests.
class Chain {
 public:
  void append(const core::Digest& digest);
  /// The chain of this sequence followed by `next`, which has `n` members.
  void append_chain(const Chain& next, std::uint64_t n);
  core::Digest value() const { return value_; }
  static Chain from(const core::Digest& value);
  /// That of the member "digest". Throws Error{bad_data} naming `origin`, the file, where it has
  /// none.
  static Chain read(const core::Json& json, const std::string& origin);
  bool operator==(const Chain&) const = default;

 private:
  core::Digest value_;
};

/// What documents say in all: of a merged shard, the parts' appended.
struct Content {
  std::uint64_t documents = 0;
  std::uint64_t elements = 0;
  /// Of each document's XXH3-128 of (elements, source bytes, source words, begin and end of marks).
  Chain boundaries;
  Chain data;  ///< of each document's XXH3-128 of its elements as they lie in the file

  void append(const core::Digest& document_data, std::uint64_t n_elements,
              std::uint64_t source_bytes, std::uint64_t source_words,
              std::span<const Span> marks = {});
  void append(const Content& next);
  bool operator==(const Content&) const = default;
};

/// XXH3-128 over the digests of kind (the header's JSON), tokenizer, boundaries and data.
/// Provenance and compression do not count.
core::Digest fingerprint(const Header& header, const Content& content);

}  // namespace shard
