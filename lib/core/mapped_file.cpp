#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/path_kind.h"
#include "core/temporary_file.h"

namespace core {

MappedFile::MappedFile(const std::string& path) : name_(path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_errno(Code::no_input, path + ": cannot open", errno);
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) refuse_folder(path);
    fail(Code::no_input, "{}: not a regular file", path);
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (mapped == MAP_FAILED) fail_errno(Code::io, path + ": cannot map it", errno);
  mapped_ = Mapped(mapped, Unmap{size_});
}

void MappedFile::release(std::size_t offset, std::size_t size) const {
  // A fault on one page also maps up to 64 KiB of pages around it (Linux).
  constexpr std::size_t kAround = std::size_t{1} << 16;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset - std::min(offset, kAround)) / page * page;
  const std::size_t end = std::min(size_, offset + size + kAround);
  auto* const data = static_cast<std::byte*>(mapped_.get());
  if (begin < end) ::madvise(data + begin, end - begin, MADV_DONTNEED);
}

}  // namespace core
