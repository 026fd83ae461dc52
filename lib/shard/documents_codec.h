#pragma once
// Document boundaries as compressed bytes: per document three LEB128 numbers (elements, source
// bytes, source words), all of them in one zstd frame.

#include <cstdint>
#include <span>
#include <string>

#include "core/io.h"
#include "shard/header.h"
#include "shard/zstd_frame.h"

namespace shard {

/// Compresses as it goes: about 4 bytes of memory a document.
class DocumentsEncoder {
 public:
  DocumentsEncoder() : context_(make_compress_context()) {}
  void append(std::uint64_t n_elements, std::uint64_t source_bytes, std::uint64_t source_words);
  /// The whole frame; nothing may follow.
  core::Bytes finish();

 private:
  void compress(bool last);
  CompressContext context_;
  core::Bytes raw_, out_;
};

/// `n_documents` of them with `n_elements` in all. Memory grows with what is there, not with what
/// is announced. Throws Error{bad_data}; `offset` is the trailer's in the file.
Documents decode_documents(std::span<const std::byte> in, std::uint64_t n_documents,
                           std::uint64_t n_elements, std::uint64_t offset, const std::string& name);

}  // namespace shard
