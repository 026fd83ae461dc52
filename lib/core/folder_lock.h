#pragma once
// One writer of a folder at a time.

#include <string>

namespace core {

/// The folder is this process's alone to change, until this goes. Readers do not ask.
class FolderLock {
 public:
  /// Throws Error{cannot_create} if another process has it, Error{no_input} if it is no folder.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace core
