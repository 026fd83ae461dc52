#pragma once
// Texts where shards are asked for.

#include <functional>
#include <memory>
#include <string>

#include "core/io.h"

namespace shard {

/// Makes a shard of the text in the file at `path`, which messages call `name`, and gives its
/// bytes.
using TextReader = std::function<std::shared_ptr<const core::RandomSource>(
    const std::string& path, const std::string& name)>;

/// From here on Dataset also takes files that begin as texts do (packed ones too) and has `reader`
/// make shards of them. For a program's start, before any thread.
void read_texts_by(TextReader reader);

/// Of a path: the shard that the reader makes of a text; the bytes of anything else that is no
/// regular file (stdin, a pipe), in a temporary file; null for a regular file that is no text, or
/// where nothing reads texts. Throws as the reader does, Error{no_input}, Error{io}.
std::shared_ptr<const core::RandomSource> spooled_or_made(const std::string& path);

/// A regular file that begins as a text does, compressed or not. Throws Error{no_input}, Error{io}.
bool is_text(const std::string& path);

}  // namespace shard
