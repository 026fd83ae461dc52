// The front's side of a fork server.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "front/fork_server.h"

namespace front {
namespace {

int server = -1;

void send_signal(int signal) {
  const int before = errno;
  ::send(server, &signal, sizeof signal, MSG_NOSIGNAL | MSG_DONTWAIT);
  errno = before;
}

// Signals that end a process or that it may handle, but for those of a fault and for SIGKILL.
constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE,
    SIGXCPU, SIGXFSZ, SIGABRT, SIGPROF, SIGVTALRM};

std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

std::uint64_t ignored_signals() {
  std::uint64_t bits = 0;
  for (int signal = 1; signal <= 64; ++signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      bits |= bit(signal);
  }
  return bits;
}

// Returns the open descriptors that a program would have after exec().
std::vector<int> inherited_descriptors() {
  std::vector<int> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    const int flags = ::fcntl(descriptor, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) all.push_back(descriptor);
  }
  return all;
}

int connected(const std::string& path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

bool send_request(int fd, const Request& request) {
  std::vector<int> sent = {request.write(), ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  sent.insert(sent.end(), request.descriptors.begin(), request.descriptors.end());
  if (sent[0] < 0 || sent[1] < 0) return false;
  const std::size_t bytes = sent.size() * sizeof(int);
  std::vector<char> control(CMSG_SPACE(bytes));
  char empty = 0;
  struct iovec data = {&empty, 1};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  struct cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), sent.data(), bytes);
  const bool done = ::sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
  ::close(sent[0]);
  ::close(sent[1]);
  return done;
}

// Ends this process as `signal` ended the other.
void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
}

}  // namespace

std::optional<int> forked(const char* program, int argc, char** argv) {
  const char* const folder = std::getenv(kForkServers);
  if (folder == nullptr || *folder == '\0') return {};
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto library = self.parent_path().parent_path() / "lib/tessera/libtessera.so";
  if (!std::filesystem::exists(library, error)) return {};
  server = connected(socket_path(folder, library));
  if (server < 0) return {};

  Request request = {.arguments = {program}, .ignored = ignored_signals()};
  request.arguments.insert(request.arguments.end(), argv, argv + argc);
  for (char** v = environ; *v != nullptr; ++v) request.environment.emplace_back(*v);
  request.mask = ::umask(0);
  ::umask(request.mask);
  request.descriptors = inherited_descriptors();
  if (request.descriptors.size() > kMostDescriptors) return {};

  // A signal that comes before the request is sent waits.
  sigset_t every, before;
  ::sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, &before);
  for (int signal = 1; signal <= 64; ++signal)
    if (::sigismember(&before, signal) == 1) request.blocked |= bit(signal);
  for (const int signal : kForwarded) {
    struct sigaction action = {};
    action.sa_handler = send_signal;
    if ((request.ignored & bit(signal)) == 0) ::sigaction(signal, &action, nullptr);
  }
  const bool sent = send_request(server, request);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);

  int status = 0;
  ssize_t bytes = -1;
  while (sent && (bytes = ::recv(server, &status, sizeof status, 0)) < 0 && errno == EINTR) {}
  if (bytes != sizeof status)
    core::fail(core::Code::unavailable, "{}: the fork server ended", kForkServers);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  end_by(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace front
