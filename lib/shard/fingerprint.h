#pragma once
// Computes fingerprints of data. Equal data has equal fingerprints, however it is split into
// shards.

#include <cstdint>
#include <span>

#include "core/hash.h"
#include "core/json.h"
#include "shard/header.h"

namespace shard {

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
              std::uint64_t source_bytes, std::uint64_t source_words,
              std::span<const Span> marks = {});
  void append(const Content& next);
  bool operator==(const Content&) const = default;
};

/// Returns the XXH3-128 of the digests of the kind (the header's JSON), tokenizer, boundaries and
/// data. Provenance and compression are not included.
core::Digest fingerprint(const Header& header, const Content& content);

}  // namespace shard
