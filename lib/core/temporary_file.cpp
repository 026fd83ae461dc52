#include "core/temporary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "core/hash.h"
#include "core/io.h"
#include "core/plain_text.h"
#include "core/units.h"

namespace core {
namespace {

// Returns the descriptor of a file that this call created, or -1.
int open_new(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

// For errno of a file that could not be created.
[[noreturn]] void fail_to_create(const std::string& path) {
  const int error = errno;
  const auto parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (error == ENOENT && !parent.empty() && !std::filesystem::exists(parent, ignored))
    fail(Code::cannot_create, "{}: cannot create: no folder {}; make it first", path,
        parent.string());
  fail_errno(Code::cannot_create, path + ": cannot create", error);
}

void remove_what_stands(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    fail_errno(Code::cannot_create, path + ": already exists and cannot be removed", errno);
}

// Returns true for a file with one name: the leftover of a killed process, or one being written.
bool is_plain(const struct stat& info) { return S_ISREG(info.st_mode) && info.st_nlink == 1; }

// Opens the file to test its lock; returns -1 if it has disappeared or must be removed.
int open_plain(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return -1;
  int fd = -1;
  if (is_plain(info)) {
    // The path may have changed meanwhile: do not follow a link, do not wait for a pipe.
    fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
      fail_errno(Code::cannot_create, path + ": cannot open", errno);
    if (fd >= 0 && ::fstat(fd, &info) == 0 && is_plain(info)) return fd;
  }
  if (fd >= 0) ::close(fd);
  remove_what_stands(path);
  return -1;
}

std::string process_ending() { return ".tmp." + std::to_string(::getpid()); }

// Fixed slots allow a signal handler to iterate over them.
constexpr std::size_t kSlots = 64, kPathBytes = 4096;
struct Slot {
  std::atomic<bool> used{false}, ready{false};
  std::array<char, kPathBytes> path{};
};
std::array<Slot, kSlots> g_temporaries;

namespace fs = std::filesystem;
constexpr int kMostLinks = 40;  // Linux's limit

// Returns true for /proc/self/fd under any name.
bool holds_descriptors(const fs::path& folder) {
  if (folder == "/dev/fd" || folder == "/proc/self/fd") return true;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return false;
  for (const char* own : {"/proc/self/fd", "/proc/thread-self/fd"})
    if (real == fs::canonical(own, error) && !error) return true;
  return false;
}

std::optional<int> descriptor_of(const fs::path& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  const auto number = read_number<int>(path.filename().native());
  if (!number || *number < 0 || !holds_descriptors(path.parent_path())) return std::nullopt;
  return number;
}

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

// Each retry means that one more process created the folder, left it empty and removed it.
constexpr int kMostTries = 1000;

// Returns false if the folder was removed or replaced since it was opened.
bool is_still_at(int fd, const std::string& path) {
  struct stat here, there;
  return ::fstat(fd, &here) == 0 && ::stat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string temporary_path(const std::string& path, const std::string& ending) {
  const std::filesystem::path whole(path);
  std::string name = whole.filename().string();
  if (name.size() + ending.size() <= NAME_MAX) return path + ending;
  const std::string digest = "." + hash128(name).hex();
  name.resize(NAME_MAX - ending.size() - digest.size());
  // Do not end with part of a character, which some file systems refuse.
  while (!name.empty() && is_continuation(name.back())) name.pop_back();
  if (!name.empty() && static_cast<unsigned char>(name.back()) >= 0xC0) name.pop_back();
  return (whole.parent_path() / (name + digest + ending)).string();
}

int create_file(const std::string& path) {
  for (;;) {
    const int fd = open_new(path);
    if (fd >= 0) return fd;
    if (errno != EEXIST) fail_to_create(path);
    remove_what_stands(path);
  }
}

int create_locked(const std::string& path, std::string& temporary, const std::string& target) {
  temporary = temporary_path(path);
  for (;;) {
    int fd = open_new(temporary);
    const bool made = fd >= 0;
    if (!made && errno != EEXIST) fail_to_create(target);
    if (!made && (fd = open_plain(temporary)) < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd);
      if (error == EINTR) continue;
      if (error == EWOULDBLOCK)
        fail(Code::cannot_create, "{}: another process is writing it; wait for it", target);
      if (made) ::unlink(temporary.c_str());
      temporary = temporary_path(path, process_ending());
      return create_file(temporary);
    }
    // The previous lock holder may have renamed or removed the file after it was opened here.
    const bool same = is_same_file(fd, temporary);
    if (made && same) return fd;
    if (same) remove_what_stands(temporary);  // the leftover of a killed process
    ::close(fd);
  }
}

bool is_same_file(int fd, const std::string& path) {
  struct stat here, there;
  return ::fstat(fd, &here) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

void make_new_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0)
    fail_errno(Code::cannot_create, path + ": cannot create", errno);
}

void remember_temporary(const std::string& path) {
  if (path.size() >= kPathBytes) return;
  for (auto& slot : g_temporaries) {
    bool expected = false;
    if (!slot.used.compare_exchange_strong(expected, true)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.ready = true;
    return;
  }
}

void forget_temporary(const std::string& path) {
  for (auto& slot : g_temporaries) {
    if (slot.ready && path == slot.path.data()) {
      slot.ready = false;
      slot.used = false;
    }
  }
}

void remove_temporaries() noexcept {
  for (auto& slot : g_temporaries)
    if (slot.ready) ::unlink(slot.path.data());
}

void remove_leftovers(const std::string& folder, const OwnName& own) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path(), name = at->path().filename();
    if (const auto output = output_of(name); output.empty() || !own(output)) continue;
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info;
    if (!file) continue;  // a folder or a link, which no Output leaves
    const bool left = ::fstat(file.fd(), &info) == 0 && S_ISREG(info.st_mode) &&
                      (::flock(file.fd(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    if (left && ::unlink(path.c_str()) != 0)
      fail(Code::io, "{}: cannot remove: {}", path, error_text(errno));
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

Destination destination_of(const std::string& path) {
  if (path.empty() || path == "-") return {"-", STDOUT_FILENO};
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    if (const auto descriptor = descriptor_of(at)) return {at.string(), descriptor};
    struct stat info;
    if (::lstat(at.c_str(), &info) != 0) {
      if (errno == ENAMETOOLONG) fail_errno(Code::cannot_create, path + ": cannot create", errno);
      return {at.string(), std::nullopt};
    }
    if (!S_ISLNK(info.st_mode)) return {at.string(), std::nullopt};
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error) fail_errno(Code::cannot_create, path + ": cannot read the link", error.value());
    at = at.parent_path() / next;  // an absolute `next` replaces the parent
  }
  fail_errno(Code::cannot_create, path + ": cannot create", ELOOP);
}

bool same_place(const std::string& a, const std::string& b) {
  const auto place = [](const std::string& path) {
    return fs::absolute(destination_of(path).path).lexically_normal();
  };
  return !a.empty() && !b.empty() && place(a) == place(b);
}

FolderLock::FolderLock(const std::string& folder, std::string_view held, Absent absent) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const bool makes = absent == Absent::made && !exists(folder);
    if (makes) make_folder(folder);
    fd_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_) {
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
    if (::flock(fd_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) fail(Code::cannot_create, "{}: {}", folder, held);
      fail(Code::cannot_create, "{}: cannot lock: {}", folder, error_text(errno));
    }
    if (makes) made_ = folder;
    if (is_still_at(fd_.fd(), folder)) return;
    made_.clear();
  }
  fail(Code::cannot_create, "{}: another program keeps removing it; give another folder", folder);
}

FolderLock::~FolderLock() {
  if (!made_.empty()) ::rmdir(made_.c_str());  // fails if the folder is not empty
}

}  // namespace core
