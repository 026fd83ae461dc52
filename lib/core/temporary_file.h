#pragma once
// Creates the temporary files and folders that later receive their final names. These functions are
// safe even if others can write to the folder: whatever already has the temporary name (the
// leftover of a killed process, a symbolic or hard link, a pipe) is unlinked, and is never
// followed, written or waited for.
// Finds and removes temporary files that core::Output left when a process was killed.
// Resolves the name of an output to a path or a descriptor.
// Allows one writer of a folder at a time.
// Closes descriptors.

#include "core/base.h"

namespace core {

/// A Descriptor closes an open file or socket when it is destroyed.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  /// Returns whether something is open.
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_;
};

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

/// An OwnName returns true for a file name, without its folder, that the caller may remove.
using OwnName = std::function<bool(std::string_view name)>;

/// Removes the temporary files (temporary_file.h) of killed Outputs from `folder`, for output names
/// that `own` accepts. A temporary file whose name had to be shortened is not recognised. Files
/// that another process is writing remain. Throws Error{io}.
void remove_leftovers(const std::string& folder, const OwnName& own);

/// Removes the temporary files of killed Outputs from `folder`, then returns true if every file
/// left in it has a name that `own` accepts. Returns false if `folder` is not a folder or is a link
/// to one. Throws Error{io}.
bool holds_only(const std::string& folder, const OwnName& own);

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

/// A FolderLock gives this process the exclusive right to modify a folder for the lock's lifetime.
/// Readers do not take the lock.
class FolderLock {
 public:
  /// Absent says what to do if the folder does not exist: throw, or create it and its parents. A
  /// folder that the lock created is removed with the lock if it is still empty.
  enum class Absent { refused, made };
  static constexpr std::string_view kHeld = "another program is changing it";

  /// Locks `folder`. Throws Error{cannot_create}, with the text `held`, if another process holds
  /// the lock; Error{cannot_create} if the folder cannot be locked or created; Error{no_input} if
  /// it is not a folder.
  explicit FolderLock(
      const std::string& folder, std::string_view held = kHeld, Absent absent = Absent::refused);
  ~FolderLock();
  FolderLock(FolderLock&&) = delete;

 private:
  Descriptor fd_;
  std::string made_;  ///< the folder, if this lock created it
};

}  // namespace core
