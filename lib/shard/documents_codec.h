#pragma once
// Encodes document boundaries as compressed bytes. One zstd frame holds three LEB128 numbers for
// each document (elements, source bytes, source words). In a marked shard, the number of the
// document's marks follows and then, for each mark, the elements since the previous mark and the
// mark's length. A second frame holds the documents' names, one per line.

#include "shard/zstd_frame.h"

namespace shard {

/// A FrameEncoder compresses bytes incrementally into one zstd frame.
class FrameEncoder {
 public:
  FrameEncoder() : context_(make_compress_context()) {}
  /// Returns the buffer to which the caller appends input.
  core::Bytes& raw() { return raw_; }
  /// Compresses the buffer if it is large.
  void flush();
  /// Returns the whole frame and ends the encoding.
  core::Bytes finish();

 private:
  void compress(bool last);
  CompressContext context_;
  core::Bytes raw_, out_;
};

/// A DocumentsEncoder takes about 4 bytes of memory per document, and the compressed size of its
/// name.
class DocumentsEncoder {
 public:
  /// Appends a document. `marks` count from the document's first element; null means that the shard
  /// is not marked. Throws Error{bad_data} for a name that contains a newline or NUL or is longer
  /// than kMostNameBytes.
  void append(std::uint64_t n_elements, std::uint64_t source_bytes, std::uint64_t source_words,
      std::string_view name = {}, const std::vector<Span>* marks = nullptr);
  /// Returns the frame of boundaries and ends the encoding.
  core::Bytes finish() { return numbers_.finish(); }
  /// Returns the frame of names, empty if no document has a name. Call it before finish().
  core::Bytes finish_names();

 private:
  FrameEncoder numbers_;
  FrameEncoder names_;
  // All documents, and those whose line names_ already has.
  std::uint64_t documents_ = 0, named_ = 0;
};

inline constexpr std::size_t kMostNameBytes = 4096;

/// Decodes `n_documents` documents with `n_elements` elements in total and at most `most_marks`
/// marks; `marked` is Header::marked. Memory grows with the bytes present, not with the declared
/// counts. Throws Error{bad_data}; `offset` is the trailer's offset in the file.
Documents decode_documents(std::span<const std::byte> in, std::uint64_t n_documents,
    std::uint64_t n_elements, bool marked, std::uint64_t most_marks, std::uint64_t offset,
    const std::string& name);

/// Decodes `n_documents` names. Memory grows with the bytes present. Throws Error{bad_data}.
std::vector<std::string> decode_names(std::span<const std::byte> in, std::uint64_t n_documents,
    std::uint64_t offset, const std::string& name);

}  // namespace shard
