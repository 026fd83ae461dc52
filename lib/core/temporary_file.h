#pragma once
// Creates the temporary files and folders that later receive their final names. These functions are
// safe even if others can write to the folder: whatever already has the temporary name (the
// leftover of a killed process, a symbolic or hard link, a pipe) is unlinked, and is never
// followed, written or waited for.

#include <string>

namespace core {

/// Returns the temporary name for `path`: PATH.tmp.tessera, or PATH with a longer `ending`. If this
/// name would exceed the limit of 255 bytes, returns the front of PATH's name, a digest of the
/// whole name, and the ending.
std::string temporary_path(const std::string& path, const std::string& ending = ".tmp.tessera");

/// Creates an empty file at `path` for reading and writing, and returns its descriptor. Throws
/// Error{cannot_create}.
int create_file(const std::string& path);

/// Creates an empty, locked file beside `path` for reading and writing, so that only one process at
/// a time writes `path`. On a file system without locks, the file's name is unique to this process.
/// Sets `temporary` to the file's name; `target` is the name in messages. Returns the descriptor.
/// Throws Error{cannot_create}, also if another process is writing the file.
int create_locked(const std::string& path, std::string& temporary, const std::string& target);

/// Returns true if `path` itself, not its link target, is the open file `fd`.
bool is_same_file(int fd, const std::string& path);

/// Creates a folder. Throws Error{cannot_create}, also if the name exists, even as a link to a
/// folder.
void make_new_folder(const std::string& path);

/// remember_temporary() registers a path that remove_temporaries() will unlink; forget_temporary()
/// unregisters it.
void remember_temporary(const std::string& path);
void forget_temporary(const std::string& path);

}  // namespace core
