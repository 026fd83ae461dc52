#pragma once
// One writer of a folder at a time.

#include <string>
#include <string_view>

namespace core {

/// The folder is this process's alone to change, until this goes. Readers do not ask.
class FolderLock {
 public:
  /// What to do where there is no folder: refuse it, or make it and those above it. A folder that
  /// was made and stayed empty is removed with the lock.
  enum class Absent { refused, made };
  static constexpr std::string_view kHeld = "another program is changing it";

  /// Throws Error{cannot_create} if another process has it, saying `held`, or if it cannot be
  /// locked or made at all; Error{no_input} if it is no folder.
  explicit FolderLock(const std::string& folder, std::string_view held = kHeld,
                      Absent absent = Absent::refused);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
  std::string made_;  ///< the folder, if this made it
};

}  // namespace core
