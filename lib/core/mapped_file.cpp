#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/path_kind.h"

namespace core {

MappedFile::MappedFile(const std::string& path) : name_(path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno(Code::no_input, path + ": cannot open", errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    if (S_ISDIR(status.st_mode)) refuse_folder(path);
    fail(Code::no_input, "{}: not a regular file", path);
  }
  size_ = static_cast<std::size_t>(status.st_size);
  void* mapped = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (mapped == MAP_FAILED) fail_errno(Code::io, path + ": cannot map it", error);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release(std::size_t offset, std::size_t size) const {
  // A fault on one page also maps up to 64 KiB of pages around it (Linux).
  constexpr std::size_t kAround = std::size_t{1} << 16;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset - std::min(offset, kAround)) / page * page;
  const std::size_t end = std::min(size_, offset + size + kAround);
  if (begin < end) ::madvise(const_cast<std::byte*>(data_ + begin), end - begin, MADV_DONTNEED);
}

}  // namespace core
