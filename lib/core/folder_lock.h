#pragma once
// Allows one writer of a folder at a time.

#include "core/base.h"

namespace core {

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
  int fd_ = -1;
  std::string made_;  ///< the folder, if this lock created it
};

}  // namespace core
