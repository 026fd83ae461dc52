#include "train/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "core/io.h"
#include "core/os_error.h"
#include "core/write_all.h"

namespace train {
namespace {

// Returns the number of bytes of the lines to keep.
std::size_t kept_bytes(std::string_view text, std::int64_t through, const std::string& path) {
  std::size_t at = 0;
  for (std::int64_t number = 1;; ++number) {
    const auto end = text.find('\n', at);
    if (end == text.npos) return at;
    const auto origin = fmt::format("{}:{}", path, number);
    const auto line = core::parse_json(text.substr(at, end - at), origin);
    if (core::get<std::int64_t>(line, "step", origin) > through) return at;
    at = end + 1;
  }
}

}  // namespace

Log::Log(const std::string& path, std::int64_t through) : path_(path) {
  core::refuse_input(path);
  constexpr int kOwn = O_NOFOLLOW | O_NONBLOCK;  // a link or a pipe is not the run's file
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | kOwn, 0666);
  if (fd_ < 0) core::fail_errno(core::Code::cannot_create, path + ": cannot create", errno);
  try {
    struct stat info;
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode))
      core::fail(core::Code::cannot_create, "{}: already exists; move it away", path);
    const auto size = kept_bytes(core::read_text(path), through, path);
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0)
      core::fail(core::Code::io, "{}: cannot write: {}", path, core::error_text(errno));
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

Log::~Log() { ::close(fd_); }

void Log::write(const core::OrderedJson& line) {
  core::write_all(fd_, path_, core::dump(line) + "\n");
}

void Log::sync() {
  if (::fsync(fd_) != 0)
    core::fail(core::Code::io, "{}: cannot write: {}", path_, core::error_text(errno));
}

double rounded(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.7g}", value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

}  // namespace train
