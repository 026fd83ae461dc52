#include "core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/os_error.h"

namespace core {

FolderLock::FolderLock(const std::string& folder, std::string_view held)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) {
    const bool none = errno == ENOENT || errno == ENOTDIR;
    fail_errno(none ? Code::no_input : Code::cannot_create, folder + ": cannot open", errno);
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd_);
    if (error == EWOULDBLOCK) fail(Code::cannot_create, "{}: {}", folder, held);
    fail(Code::cannot_create, "{}: cannot lock: {}", folder, error_text(error));
  }
}

FolderLock::~FolderLock() { ::close(fd_); }

}  // namespace core
