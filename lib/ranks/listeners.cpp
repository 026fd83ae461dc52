#include "ranks/listeners.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace ranks {

std::vector<int> listeners() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int fd = -1, listens = 0, domain = 0;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    socklen_t length = sizeof(listens);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
      continue;
    length = sizeof(domain);
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
        (domain == AF_INET || domain == AF_INET6))
      found.push_back(fd);
  }
  return found;
}

void stop_accepting(const std::vector<int>& sockets) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &drop_all};
  for (const int fd : sockets)
    ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

}  // namespace ranks
