#pragma once
// Lets programs accept text files in place of shards.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/io.h"

namespace shard {

/// A TextReader converts the text file at `path` to a shard and returns the shard's bytes. `name`
/// is the file's name in messages.
using TextReader = std::function<std::shared_ptr<const core::RandomSource>(
    const std::string& path, const std::string& name)>;

/// Makes Dataset also accept files that begin as text (compressed files included); `reader`
/// converts them. Call it at program start, before any thread starts.
void read_texts_by(TextReader reader);

/// Returns the reader's shard for a text; the bytes of any other input that is not a regular file
/// (stdin, a pipe), in a temporary file; null for a regular file that is not text, or without a
/// reader. Throws as the reader does, Error{no_input}, Error{io}.
std::shared_ptr<const core::RandomSource> spooled_or_made(const std::string& path);

/// Returns true for a regular file that begins as text, compressed or not. Throws Error{no_input},
/// Error{io}.
bool is_text(const std::string& path);

/// Throws Error{bad_data} for a text in place of a shard of another kind, which no text can be
/// converted to. `give` says which: "an order of bm25-pack".
void refuse_text(const std::string& path, std::string_view give);

}  // namespace shard
