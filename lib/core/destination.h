#pragma once
// Resolves the name of an output to a path or a descriptor.

#include <optional>
#include <string>

namespace core {

/// A Destination is a place to write to: an open descriptor, or a path whose last component is not
/// a symbolic link. The path need not exist.
struct Destination {
  std::string path;
  std::optional<int> descriptor;
};

/// Resolves `path`. "-", "", /dev/stdout, /dev/fd/1, /proc/self/fd/1 and links to these mean
/// descriptor 1; other numbers in /dev/fd and /proc/self/fd mean that descriptor. A symbolic link
/// is resolved to its final target, even if the target does not exist. Throws Error{cannot_create}
/// for a cycle of links and for a name that is too long.
Destination destination_of(const std::string& path);
/// Returns true if two outputs would write to one place. An empty path writes nowhere.
bool same_place(const std::string& a, const std::string& b);

}  // namespace core
