#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/io.h"

namespace core {
namespace {

// Each retry means that one more process created the folder, left it empty and removed it.
constexpr int kMostTries = 1000;

// Returns false if the folder was removed or replaced since it was opened.
bool is_still_at(int fd, const std::string& path) {
  struct stat here, there;
  return ::fstat(fd, &here) == 0 && ::stat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, std::string_view held, Absent absent) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const bool makes = absent == Absent::made && !exists(folder);
    if (makes) make_folder(folder);
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) {
      if (errno == ENOENT && makes) continue;
      const bool none = errno == ENOENT || errno == ENOTDIR;
      if (absent == Absent::made && errno == ENOTDIR && exists(folder))
        fail(Code::cannot_create, "{}: cannot create: a file of that name is there; give a folder",
            folder);
      if (absent == Absent::made)
        fail_errno(
            Code::cannot_create, folder + (none ? ": cannot create" : ": cannot open"), errno);
      fail_errno(none ? Code::no_input : Code::cannot_create, folder + ": cannot open", errno);
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd_);
      if (error == EWOULDBLOCK) fail(Code::cannot_create, "{}: {}", folder, held);
      fail(Code::cannot_create, "{}: cannot lock: {}", folder, error_text(error));
    }
    if (makes) made_ = folder;
    if (is_still_at(fd_, folder)) return;
    ::close(fd_);
    made_.clear();
  }
  fail(Code::cannot_create, "{}: another program keeps removing it; give another folder", folder);
}

FolderLock::~FolderLock() {
  if (!made_.empty()) ::rmdir(made_.c_str());  // fails if the folder is not empty
  ::close(fd_);
}

}  // namespace core
