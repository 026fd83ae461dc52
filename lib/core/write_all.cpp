#include "core/write_all.h"

#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/os_error.h"

namespace core {

void write_all(int fd, const std::string& name, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(Code::io, "{}: cannot write: {}", name, error_text(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace core
