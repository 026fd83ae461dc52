#pragma once
// A folder as a fuzzer's input: for each file a line "NAME BYTES" and that number of bytes.
// tests/fuzz/pack_store makes an input from a folder.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "unit/temporary_folder.h"

using PackedFiles = std::map<std::string, std::string>;

/// Ignores files whose names the folder does not use.
inline PackedFiles unpack(
    std::string_view text, const std::function<bool(const std::string& name)>& own) {
  PackedFiles files;
  while (!text.empty()) {
    const auto space = text.find(' '), line = text.find('\n');
    if (space == text.npos || line == text.npos || space > line) break;
    std::size_t size = 0;
    std::from_chars(text.data() + space + 1, text.data() + line, size);
    const std::string name(text.substr(0, space));
    text.remove_prefix(line + 1);
    const auto bytes = text.substr(0, size);
    if (own(name)) files[name] = bytes;
    text.remove_prefix(bytes.size());
  }
  return files;
}

inline void pack(const PackedFiles& files, std::vector<std::byte>& bytes) {
  std::string text;
  for (const auto& [name, content] : files)
    text += name + ' ' + std::to_string(content.size()) + '\n' + content;
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.assign(data, data + text.size());
}

/// One folder for the whole run.
struct FuzzedFolder : TemporaryFolder {
  /// Makes the folder hold exactly these files.
  void hold(const PackedFiles& files) const {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      std::filesystem::remove(entry.path());
    for (const auto& [name, content] : files)
      std::ofstream(path / name, std::ios::binary) << content;
  }
};
