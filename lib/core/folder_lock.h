#pragma once
// One writer of a folder at a time.

#include <string>
#include <string_view>

namespace core {

/// The folder is this process's alone to change, until this goes. Readers do not ask.
class FolderLock {
 public:
  /// Throws Error{cannot_create} if another process has it, saying `held`, or if it cannot be locked
  /// at all; Error{no_input} if it is no folder.
  explicit FolderLock(const std::string& folder,
                      std::string_view held = "another program is changing it");
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace core
