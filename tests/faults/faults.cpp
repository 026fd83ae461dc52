// A library to preload. The n-th call of a kind fails, or the process dies there.
//
//   FAULT_CALL   write, fsync, rename, open, create (an open that may create a file), mmap, read,
//                truncate, mkdir, unlink, exit (after main); or several with commas
//   FAULT_AT     which call of those kinds, from 1; 0 or none: only count; `3+`: all from the third
//                on, as on a disk that stays full
//   FAULT_ERRNO  the number the call fails with [5, EIO]; `kill`: SIGKILL, after half of a write;
//                `stop`: SIGSTOP before the call, which succeeds once the process continues;
//                `kill-after`, `term-after`, `int-after`, `usr1-after`: that signal once the call
//                has done its work (not for mmap and read)
//   FAULT_THERE  a path that access() reports as existing
//   FAULT_COUNT  a file to which the number of calls is written when the process ends
//
// A child of the process runs without this library: LD_PRELOAD is unset, since a program's front
// ends the process at once only where nothing is preloaded (cmd/front/front.cpp).
//
// Calls count from just before main. System files (/proc, /usr, ...), standard streams and devices
// are not affected, nor what NVIDIA's libraries map while LibTorch's CUDA build is loaded. Calls
// within the C library (stdio, malloc, the loader) do not pass through this library.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

namespace {

enum Kind : unsigned {
  kWrite = 1,
  kFsync = 2,
  kRename = 4,
  kOpen = 8,
  kMmap = 16,
  kRead = 32,
  kTruncate = 64,
  kMkdir = 128,
  kUnlink = 256,
  kCreate = 512,
  kExit = 1024
};
constexpr const char* kNames[] = {"write", "fsync", "rename", "open", "mmap", "read", "truncate",
    "mkdir", "unlink", "create", "exit"};

struct Plan {
  bool on = false, kill = false, stop = false, stays = false;
  unsigned kinds = 0;
  long at = 0;
  int error = EIO;
  int after = 0;  // the signal to raise after the call; 0: none
  const char* count_file = nullptr;
};
Plan g_plan;
thread_local bool g_due = false;  // the current call raises it
std::atomic<long> g_calls{0};

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

unsigned kinds_of(const char* list) {
  unsigned kinds = 0;
  for (unsigned i = 0; i < std::size(kNames); ++i)
    if (std::strstr(list, kNames[i]) != nullptr) kinds |= 1u << i;
  return kinds;
}

struct Ending {
  const char* name;
  int number;
};

[[gnu::constructor]] void start() {
  g_plan.kinds = kinds_of(variable("FAULT_CALL"));
  g_plan.at = std::atol(variable("FAULT_AT"));
  g_plan.stays = std::strchr(variable("FAULT_AT"), '+') != nullptr;
  const char* error = variable("FAULT_ERRNO");
  g_plan.kill = std::strcmp(error, "kill") == 0;
  g_plan.stop = std::strcmp(error, "stop") == 0;
  for (const auto& [name, number] : {Ending{"kill-after", SIGKILL}, {"term-after", SIGTERM},
           {"int-after", SIGINT}, {"usr1-after", SIGUSR1}})
    if (std::strcmp(error, name) == 0) g_plan.after = number;
  if (*error >= '0' && *error <= '9') g_plan.error = std::atoi(error);
  const char* file = variable("FAULT_COUNT");
  g_plan.count_file = *file != '\0' ? file : nullptr;
  g_plan.on = true;
  ::unsetenv("LD_PRELOAD");
}

// Returns true if this call, of these kinds, is the one that fails.
bool strikes(unsigned kinds) {
  if (!g_plan.on || (g_plan.kinds & kinds) == 0) return false;
  const long call = ++g_calls;
  if (g_plan.at == 0 || (g_plan.stays ? call < g_plan.at : call != g_plan.at)) return false;
  if (g_plan.stop) ::raise(SIGSTOP);
  g_due = g_plan.after != 0;
  return !g_plan.stop && !g_due;
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

// Returns the result of the failing call.
long fail() {
  if (g_plan.kill) die();
  errno = g_plan.error;
  return -1;
}

// Returns the result of a completed call, after raising the signal.
template <class Result> Result after(Result result) {
  if (!g_due) return result;
  g_due = false;
  const int error = errno;
  if (g_plan.after == SIGKILL) die();
  ::raise(g_plan.after);
  errno = error;
  return result;
}

// The end of the process: of exit(), behind the destructors of static objects, or of _exit().
[[gnu::destructor]] void end() {
  if (!g_plan.on) return;
  if (strikes(kExit)) fail();
  after(0);
  g_plan.on = false;
  if (g_plan.count_file == nullptr) return;
  if (std::FILE* file = std::fopen(g_plan.count_file, "w")) {
    std::fprintf(file, "%ld\n", g_calls.load());
    std::fclose(file);
  }
}

bool of_system(const char* path) {
  for (const char* folder : {"/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/lib"})
    if (std::strncmp(path, folder, std::strlen(folder)) == 0) return true;
  return false;
}

// Returns false for standard streams, devices, and files in /proc and /sys that libraries read.
bool ours(int fd) {
  struct stat info;
  struct statfs system;
  return fd > 2 && ::fstat(fd, &info) == 0 && !S_ISCHR(info.st_mode) &&
         ::fstatfs(fd, &system) == 0 && system.f_type != PROC_SUPER_MAGIC &&
         system.f_type != SYSFS_MAGIC;
}

// Is the code at this address of one of NVIDIA's libraries (libcupti, libcudart)?
bool of_nvidia(const void* address) {
  Dl_info found;
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return false;
  return std::strstr(found.dli_fname, "/libcu") != nullptr;
}

template <class Function> Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list list) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(list, int)) : 0;
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  const unsigned kinds = (flags & O_CREAT) != 0 ? kOpen | kCreate : kOpen;
  if (!of_system(path) && strikes(kinds)) return static_cast<int>(fail());
  return after(next<int (*)(const char*, int, ...)>(name)(path, flags, mode));
}

void* map_as(const char* name, const void* caller, void* at, std::size_t bytes, int protection,
    int flags, int fd, off_t offset) {
  if (!of_nvidia(caller) && strikes(kMmap)) {
    fail();
    return MAP_FAILED;
  }
  return next<void* (*)(void*, std::size_t, int, int, int, off_t)>(name)(
      at, bytes, protection, flags, fd, offset);
}

ssize_t write_at_as(const char* name, int fd, const void* bytes, std::size_t n, off_t offset) {
  const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>(name);
  if (ours(fd) && strikes(kWrite)) {
    if (g_plan.kill) real(fd, bytes, n / 2, offset);
    return fail();
  }
  return after(real(fd, bytes, n, offset));
}

ssize_t read_at_as(const char* name, int fd, void* bytes, std::size_t n, off_t offset) {
  if (ours(fd) && strikes(kRead)) return fail();
  return next<ssize_t (*)(int, void*, std::size_t, off_t)>(name)(fd, bytes, n, offset);
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, std::size_t n) {
  const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  if (ours(fd) && strikes(kWrite)) {
    if (g_plan.kill) real(fd, bytes, n / 2);
    return fail();
  }
  return after(real(fd, bytes, n));
}
ssize_t pwrite(int fd, const void* bytes, std::size_t n, off_t offset) {
  return write_at_as("pwrite", fd, bytes, n, offset);
}
ssize_t pwrite64(int fd, const void* bytes, std::size_t n, off64_t offset) {
  return write_at_as("pwrite64", fd, bytes, n, offset);
}
ssize_t writev(int fd, const struct iovec* pieces, int n) {
  if (ours(fd) && strikes(kWrite)) return fail();
  return after(next<ssize_t (*)(int, const struct iovec*, int)>("writev")(fd, pieces, n));
}

ssize_t read(int fd, void* bytes, std::size_t n) {
  if (ours(fd) && strikes(kRead)) return fail();
  return next<ssize_t (*)(int, void*, std::size_t)>("read")(fd, bytes, n);
}
ssize_t pread(int fd, void* bytes, std::size_t n, off_t offset) {
  return read_at_as("pread", fd, bytes, n, offset);
}
ssize_t pread64(int fd, void* bytes, std::size_t n, off64_t offset) {
  return read_at_as("pread64", fd, bytes, n, offset);
}

void _exit(int code) {
  end();
  next<void (*)(int)>("_exit")(code);
  __builtin_unreachable();
}

int access(const char* path, int mode) noexcept {
  const char* const there = variable("FAULT_THERE");
  if (*there != '\0' && std::strcmp(path, there) == 0) return 0;
  return next<int (*)(const char*, int)>("access")(path, mode);
}

int fsync(int fd) {
  if (strikes(kFsync)) return static_cast<int>(fail());
  return after(next<int (*)(int)>("fsync")(fd));
}
int fdatasync(int fd) {
  if (strikes(kFsync)) return static_cast<int>(fail());
  return after(next<int (*)(int)>("fdatasync")(fd));
}

int rename(const char* from, const char* to) noexcept {
  if (strikes(kRename)) return static_cast<int>(fail());
  return after(next<int (*)(const char*, const char*)>("rename")(from, to));
}

int renameat2(
    int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (strikes(kRename)) return static_cast<int>(fail());
  return after(next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(
      from_folder, from, to_folder, to, flags));
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_as("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_as("open64", path, flags, mode);
}
int mkstemp(char* path) {
  if (strikes(kOpen | kCreate)) return static_cast<int>(fail());
  return after(next<int (*)(char*)>("mkstemp")(path));
}
int mkostemp(char* path, int flags) {
  if (strikes(kOpen | kCreate)) return static_cast<int>(fail());
  return after(next<int (*)(char*, int)>("mkostemp")(path, flags));
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return map_as("mmap", __builtin_return_address(0), at, bytes, protection, flags, fd, offset);
}
void* mmap64(
    void* at, std::size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return map_as("mmap64", __builtin_return_address(0), at, bytes, protection, flags, fd, offset);
}

int ftruncate(int fd, off_t bytes) noexcept {
  if (strikes(kTruncate)) return static_cast<int>(fail());
  return after(next<int (*)(int, off_t)>("ftruncate")(fd, bytes));
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (strikes(kMkdir)) return static_cast<int>(fail());
  return after(next<int (*)(const char*, mode_t)>("mkdir")(path, mode));
}
int unlink(const char* path) noexcept {
  if (strikes(kUnlink)) return static_cast<int>(fail());
  return after(next<int (*)(const char*)>("unlink")(path));
}

}  // extern "C"
