#include "core/leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/temporary_file.h"

namespace core {

namespace fs = std::filesystem;

namespace {

// Returns NAME for NAME.tmp.tessera and NAME.tmp.PID, else an empty text.
std::string output_of(const std::string& name) {
  constexpr std::string_view kMark = ".tmp.";
  const auto mark = name.rfind(kMark);
  if (mark == name.npos) return {};
  const std::string output = name.substr(0, mark);
  const auto rest = std::string_view(name).substr(mark + kMark.size());
  const bool number = !rest.empty() && rest.find_first_not_of("0123456789") == rest.npos;
  return number || name == temporary_path(output) ? output : std::string();
}

}  // namespace

void remove_leftovers(const std::string& folder, const OwnName& own) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path(), name = at->path().filename();
    if (const auto output = output_of(name); output.empty() || !own(output)) continue;
    const int fd = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0) continue;  // a folder or a link, which no Output leaves
    const bool left = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                      (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    const bool removed = !left || ::unlink(path.c_str()) == 0;
    const int failed = errno;
    ::close(fd);
    if (!removed) fail(Code::io, "{}: cannot remove: {}", path, error_text(failed));
  }
  if (error) fail(Code::io, "{}: cannot read: {}", folder, error.message());
}

bool holds_only(const std::string& folder, const OwnName& own) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return false;
  remove_leftovers(folder, own);
  bool only = true;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    only = only && at->symlink_status().type() == fs::file_type::regular &&
           own(at->path().filename().string());
  if (error) fail(Code::io, "{}: cannot read: {}", folder, error.message());
  return only;
}

}  // namespace core
