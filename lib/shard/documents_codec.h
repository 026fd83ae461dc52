#pragma once
// Document boundaries as compressed bytes: per document three LEB128 numbers (elements, source
// bytes, source words), all of them in one zstd frame; names of documents, a line each, in another.
// Of a marked shard each document's numbers are followed by that of its marks and, for each, the
// elements since the last and its own.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io.h"
#include "shard/header.h"
#include "shard/zstd_frame.h"

namespace shard {

/// Compresses bytes as they come, into one zstd frame.
class FrameEncoder {
 public:
  FrameEncoder() : context_(make_compress_context()) {}
  /// What is to come next goes to the end of it.
  core::Bytes& raw() { return raw_; }
  /// Compresses what is there, if it is much.
  void flush();
  /// The whole frame; nothing may follow.
  core::Bytes finish();

 private:
  void compress(bool last);
  CompressContext context_;
  core::Bytes raw_, out_;
};

/// About 4 bytes of memory a document, and what its name takes compressed.
class DocumentsEncoder {
 public:
  /// Throws Error{bad_data} for a name with a newline or NUL in it, or a longer one than
  /// kMostNameBytes. `marks`: from the document's first element on; null: the shard is not marked.
  void append(std::uint64_t n_elements, std::uint64_t source_bytes, std::uint64_t source_words,
              std::string_view name = {}, const std::vector<Span>* marks = nullptr);
  /// The frame of boundaries; nothing may follow.
  core::Bytes finish();
  /// That of names; nothing where there is none. Before finish().
  core::Bytes finish_names();

 private:
  FrameEncoder numbers_;
  FrameEncoder names_;
  std::uint64_t documents_ = 0, named_ = 0;  // all, and those of which names_ has a line
};

inline constexpr std::size_t kMostNameBytes = 4096;

/// `n_documents` of them with `n_elements` in all and at most `most_marks` marks; `marked`:
/// Header::marked. Memory grows with what is there, not with what
/// is announced. Throws Error{bad_data}; `offset` is the trailer's in the file.
Documents decode_documents(std::span<const std::byte> in, std::uint64_t n_documents,
                           std::uint64_t n_elements, bool marked, std::uint64_t most_marks,
                           std::uint64_t offset, const std::string& name);

/// As many names. Memory grows with the bytes that are there. Throws Error{bad_data}.
std::vector<std::string> decode_names(std::span<const std::byte> in, std::uint64_t n_documents,
                                      std::uint64_t offset, const std::string& name);

}  // namespace shard
