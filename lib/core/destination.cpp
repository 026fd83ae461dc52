#include "core/destination.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "core/os_error.h"

namespace core {
namespace {

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
  const std::string name = path.filename().string();
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || rest != end || number < 0) return std::nullopt;
  if (!holds_descriptors(path.parent_path())) return std::nullopt;
  return number;
}

}  // namespace

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

}  // namespace core
