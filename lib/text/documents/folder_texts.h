#pragma once
// Finds the texts in a folder and its subfolders, which `tokenize --recursive` reads.

#include "core/base.h"

namespace text {

/// FolderTexts lists the texts that were found.
struct FolderTexts {
  std::vector<std::string> paths;
  std::vector<std::string> names;  ///< path of each within its folder, with slashes; UTF-8
  std::vector<std::string> notes;  ///< what was left out, one line each
};

/// Lists the regular files below each folder, sorted by the bytes of their paths within it. Leaves
/// out hidden files and folders (.git), links, special files, shards, and files that do not begin
/// as text once decompressed: known binary formats, or a NUL in the first 4 KiB. Throws
/// Error{no_input} for a path that is not a folder, Error{bad_data} for folders without a text and
/// for a name that no document can have.
FolderTexts texts_below(const std::vector<std::string>& folders);

}  // namespace text
