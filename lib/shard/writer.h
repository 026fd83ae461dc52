#pragma once
// Writes a shard, front to back, without seeking.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/io.h"
#include "shard/header.h"

namespace shard {

/// Bytes depend on header, provenance, elements and documents alone: not on `jobs`, nor on how the
/// elements were cut into calls. Memory: a few hundred KiB a job and about 4 bytes a document.
/// Not thread safe; `jobs` threads compress. Every call throws Error{io} if the sink does.
class Writer {
 public:
  /// The sink must outlive the Writer. Throws Error{bad_data} if the header contradicts itself.
  Writer(core::ByteSink& sink, Header header, std::vector<core::OrderedJson> provenance = {},
         int jobs = 1);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Appends elements, narrowed to the header's dtype. Throws Error{bad_data} for one that is not
  /// below the vocabulary, Error{bug} for integers into a shard of f32 and the reverse.
  void write(std::span<const std::uint32_t> elements);
  void write(std::span<const std::uint64_t> elements);
  void write(std::span<const float> elements);

  /// The elements since the last call are a document whose source text had so many bytes and words
  /// (0, 0 where there is none). Its name is a line, or nothing. `marks`: Header::marked, which of
  /// them are to be learned, from the document's first on. Throws Error{bad_data} within a row of
  /// vectors, and for another name, Error{bug} for marks that are none.
  void end_document(std::uint64_t source_bytes = 0, std::uint64_t source_words = 0,
                    std::string_view name = {}, const std::vector<Span>& marks = {});

  /// One more entry, of inputs whose fingerprints are known only when they have been read.
  void add_provenance(core::OrderedJson entry);

  /// Writes what must stand last. Elements after the last end_document() become a document. Without
  /// finish() the output is cut short, and every reader says so. Does not commit a core::Output.
  void finish();

  /// After finish().
  core::Digest fingerprint() const;
  std::uint64_t elements() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
