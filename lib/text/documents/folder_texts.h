#pragma once
// The texts in a folder and its folders: what `tokenize --recursive` reads.

#include <string>
#include <vector>

namespace text {

struct FolderTexts {
  std::vector<std::string> paths;
  std::vector<std::string> names;  ///< of each, within its folder, with slashes; UTF-8
  std::vector<std::string> notes;  ///< what was left out, a line each
};

/// The regular files below each of the folders, by the bytes of their names within it. Left out are
/// hidden ones (.git), links, what is no regular file, shards, and files that begin otherwise than
/// texts do, unpacked: as known formats, or with a NUL in their first 4 KiB. Throws Error{no_input}
/// for what is no folder, Error{bad_data} for folders without a text and for a name that no document
/// can have.
FolderTexts texts_below(const std::vector<std::string>& folders);

}  // namespace text
