#pragma once
// Files and folders that are written before they have their name. Whoever else may write to the
// folder, nothing but the new file is ever written: what stands under its name already (what a
// killed process left, a symbolic or hard link, a pipe) is unlinked, and neither followed, written
// nor waited for.

#include <string>

namespace core {

/// The name beside `path` that it has until it is whole: PATH.tmp.tessera, or with a longer ending.
/// Where that would have more than the 255 bytes that a name may have: the front of PATH's name, a
/// digest of all of it, and the ending.
std::string temporary_path(const std::string& path, const std::string& ending = ".tmp.tessera");

/// A new, empty file at `path`, to read and to write; returns its descriptor. Throws
/// Error{cannot_create}.
int create_file(const std::string& path);

/// A new, empty, locked file beside `path`, to read and to write, so that of several processes one
/// at a time writes `path`. On a file system without locks its name is this process's alone.
/// `temporary` gets its name, `target` is what messages call it. Throws Error{cannot_create}, also
/// if another process is writing it.
int create_locked(const std::string& path, std::string& temporary, const std::string& target);

/// True if `path` itself, not what it links to, is the open file `fd`.
bool is_same_file(int fd, const std::string& path);

/// A new folder. Throws Error{cannot_create}, also where anything has that name, a link to a folder
/// included.
void make_new_folder(const std::string& path);

/// remove_temporaries() unlinks what was remembered and not forgotten.
void remember_temporary(const std::string& path);
void forget_temporary(const std::string& path);

}  // namespace core
