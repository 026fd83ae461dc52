#include "core/spill.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/os_error.h"

namespace core {

SpillFile::SpillFile() {
  const char* folder = std::getenv("TMPDIR");
  std::string path =
      std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/tessera-XXXXXX";
  fd_ = ::mkstemp(path.data());
  if (fd_ < 0)
    core::fail_errno(core::Code::cannot_create,
                     path + ": cannot create; set TMPDIR to another folder", errno);
  ::unlink(path.c_str());
}

SpillFile::~SpillFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
  if (fd_ >= 0) ::close(fd_);
}

void SpillFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      core::fail(core::Code::io, "temporary file: {}; set TMPDIR to a folder with more space",
                 core::error_text(errno));
    size_ += static_cast<std::size_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

const std::byte* SpillFile::map() {
  if (size_ == 0) return nullptr;
  mapped_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    core::fail(core::Code::io, "temporary file: {}", core::error_text(errno));
  }
  return static_cast<const std::byte*>(mapped_);
}

}  // namespace core
