#include "model/mapped_tensor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/os_error.h"

namespace model {

torch::Tensor map_tensor(const std::string& path, const TensorEntry& entry) {
  if (entry.begin == entry.end || entry.begin % c10::elementSize(entry.dtype) != 0) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = entry.begin / page * page, size = entry.end - first;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) core::fail_errno(core::Code::no_input, path + ": cannot open", errno);
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                              fd, static_cast<off_t>(first));
  const int error = errno;
  ::close(fd);
  if (mapped == MAP_FAILED) core::fail_errno(core::Code::io, path + ": cannot map it", error);
  return torch::from_blob(
      static_cast<std::byte*>(mapped) + (entry.begin - first), entry.shape,
      [mapped, size](void*) { ::munmap(mapped, size); }, entry.dtype);
}

}  // namespace model
