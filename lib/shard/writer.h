#pragma once
// Writes a shard front to back, without seeking.

#include "core/io.h"
#include "shard/header.h"

namespace shard {

/// A Writer's output depends only on header, provenance, elements and documents, not on `jobs` or
/// on how calls divide the elements. It uses a few hundred KiB of memory per job and about 4 bytes
/// per document. `jobs` threads compress. Every call throws Error{io} if the sink does. Not thread
/// safe.
class Writer {
 public:
  /// Writes the header. The sink must outlive the Writer. Throws Error{bad_data} if the header
  /// contradicts itself.
  Writer(core::ByteSink& sink, Header header, std::vector<core::OrderedJson> provenance = {},
      int jobs = 1);
  ~Writer();
  Writer(Writer&&) = delete;

  /// Appends elements, narrowed to the header's dtype. Throws Error{bad_data} for an element that
  /// is not below the vocabulary, and Error{bug} for integers in an f32 shard or floats in an
  /// integer shard.
  void write(std::span<const std::uint32_t> elements);
  void write(std::span<const std::uint64_t> elements);
  void write(std::span<const float> elements);

  /// Ends a document that consists of the elements since the last call. `source_bytes` and
  /// `source_words` are the sizes of its source text (0, 0 without one). `name` is one line or
  /// empty. `marks` (Header::marked) are the elements to be learned, counted from the document's
  /// first. Throws Error{bad_data} inside a row of vectors and for an invalid name, Error{bug} for
  /// invalid marks.
  void end_document(std::uint64_t source_bytes = 0, std::uint64_t source_words = 0,
      std::string_view name = {}, const std::vector<Span>& marks = {});

  /// Appends a provenance entry, for inputs whose fingerprints are known only after they have been
  /// read.
  void add_provenance(core::OrderedJson entry);

  /// Writes the trailer and the seek table. Elements after the last end_document() become a
  /// document. Without finish() the output is truncated, and every reader says so. Does not commit
  /// a core::Output.
  void finish();

  /// Returns the fingerprint; finish() must precede.
  core::Digest fingerprint() const;
  std::uint64_t elements() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard
