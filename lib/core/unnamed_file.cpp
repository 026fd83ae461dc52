#include "core/unnamed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace core {

UnnamedFile::UnnamedFile(std::string name) : name_(std::move(name)) {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/tmp";
  gone_ = std::string(folder) + "/tessera.XXXXXX";
  fd_ = ::mkostemp(gone_.data(), O_CLOEXEC);
  if (fd_ < 0) fail_errno(Code::cannot_create, gone_ + ": cannot create", errno);
  ::unlink(gone_.c_str());
}

UnnamedFile::~UnnamedFile() { ::close(fd_); }

void UnnamedFile::write(std::span<const std::byte> in) { write_all(fd_, gone_, in); }

void UnnamedFile::write_all_of(ByteSource& source) {
  Bytes buffer(std::size_t{1} << 18);
  while (const std::size_t n = source.read(buffer))
    write(std::span<const std::byte>(buffer).first(n));
}

std::string UnnamedFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

std::shared_ptr<const RandomSource> UnnamedFile::contents() const {
  return std::make_shared<RandomFile>(path(), name_);
}

SpillFile::SpillFile() {
  const char* folder = std::getenv("TMPDIR");
  std::string path =
      std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/tessera-XXXXXX";
  fd_ = ::mkstemp(path.data());
  if (fd_ < 0)
    core::fail_errno(
        core::Code::cannot_create, path + ": cannot create; set TMPDIR to another folder", errno);
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
