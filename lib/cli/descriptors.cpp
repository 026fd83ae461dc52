#include "cli/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace cli {
namespace {

std::array<bool, 3> g_filled = {};  // by descriptor

}  // namespace

void fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    g_filled[static_cast<std::size_t>(descriptor)] = true;
    // The wrong access mode makes reading and writing fail, as on a closed descriptor.
    ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

void close_filled_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (g_filled[static_cast<std::size_t>(descriptor)]) ::close(descriptor);
}

bool stdout_was_closed() { return g_filled[STDOUT_FILENO]; }

}  // namespace cli
