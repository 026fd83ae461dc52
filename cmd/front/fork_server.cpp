// fork_server FOLDER LIBRARY: serves the fronts of the programs in LIBRARY, libtessera.so, over a
// socket in FOLDER until it receives SIGTERM or its parent ends. See fork_server.h.

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <vector>

#include "front/fork_server.h"
#include "front/front.h"

namespace {

struct Client {
  int socket = -1;
  pid_t process = 0;  // 0: has sent no request yet
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  ::_exit(71);
}

// The received descriptors take their numbers; all others are closed.
void take_descriptors(const std::vector<int>& received, const std::vector<int>& numbers) {
  const int above = numbers.empty() ? 3 : *std::max_element(numbers.begin(), numbers.end()) + 1;
  std::vector<int> high;
  for (const int fd : received) high.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
  ::close_range(0, static_cast<unsigned>(above - 1), 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) ::dup2(high[i], numbers[i]);
  ::close_range(static_cast<unsigned>(above), ~0u, 0);
}

void take_signals(const front::Request& request) {
  for (int signal = 1; signal <= 64; ++signal)
    ::signal(signal, (request.ignored >> (signal - 1) & 1) != 0 ? SIG_IGN : SIG_DFL);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (int signal = 1; signal <= 64; ++signal)
    if ((request.blocked >> (signal - 1) & 1) != 0) ::sigaddset(&blocked, signal);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

// The forked process: becomes what the front would be after exec(), and runs the program.
[[noreturn]] void run(front::MainOf main_of, std::vector<int> received) {
  ::setpgid(0, 0);
  // What is kept until the process ends.
  static auto request = front::Request::read(received.at(0));
  static std::vector<char*> arguments;
  std::ignore = ::fchdir(received.at(1));
  received.erase(received.begin(), received.begin() + 2);
  take_descriptors(received, request.descriptors);
  ::umask(request.mask);
  ::clearenv();
  for (auto& variable : request.environment) ::putenv(variable.data());
  for (std::size_t i = 1; i < request.arguments.size(); ++i)
    arguments.push_back(request.arguments[i].data());
  arguments.push_back(nullptr);
  ::prctl(PR_SET_NAME, request.arguments[0].c_str());
  take_signals(request);
  const int code = main_of(request.arguments[0].c_str())(
      static_cast<int>(arguments.size()) - 1, arguments.data());
  std::fflush(nullptr);
  ::_exit(code);
}

// Receives a request or a signal's number. Returns false if the front has ended.
bool receive(Client& client, front::MainOf main_of) {
  int signal = 0;
  std::array<char, CMSG_SPACE((front::kMostDescriptors + 2) * sizeof(int))> control;
  struct iovec data = {&signal, sizeof signal};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = ::recvmsg(client.socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (bytes <= 0) return false;
  if (client.process != 0) {
    ::kill(client.process, signal);
    return true;
  }
  const struct cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  std::vector<int> received((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(received.data(), CMSG_DATA(header), received.size() * sizeof(int));
  client.process = ::fork();
  if (client.process == 0) run(main_of, received);
  for (const int fd : received) ::close(fd);
  return client.process > 0;
}

// Answers the fronts of the processes that have ended.
void reap(std::vector<Client>& clients) {
  int status = 0;
  for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
    for (auto& client : clients)
      if (client.process == ended) {
        if (client.socket >= 0) {
          ::send(client.socket, &status, sizeof status, MSG_NOSIGNAL);
          ::close(client.socket);
        }
        client = {-1, 0};
      }
}

// The front has ended: so does the process, which reap() then finds.
void leave(Client& client) {
  ::close(client.socket);
  client.socket = -1;
  if (client.process > 0) ::kill(client.process, SIGKILL);
  else client.process = 0;
}

int listening(const std::string& path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) die("FOLDER: too long a name");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 128) != 0)
    die(path.c_str());
  return fd;
}

front::MainOf loaded(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  const auto main_of =
      library ? reinterpret_cast<front::MainOf>(::dlsym(library, front::kMainOf)) : nullptr;
  if (main_of == nullptr) {
    std::fprintf(stderr, "fork_server: %s\n", ::dlerror());
    ::_exit(69);
  }
  // A forked process would not have them.
  const std::filesystem::directory_iterator threads("/proc/self/task"), end;
  if (std::distance(threads, end) != 1) {
    std::fprintf(stderr, "fork_server: %s starts threads when it is loaded\n", path);
    ::_exit(70);
  }
  return main_of;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  const front::MainOf main_of = loaded(argv[2]);
  const int ended = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  const int fronts = listening(front::socket_path(argv[1], argv[2]));
  std::vector<Client> clients;
  for (;;) {
    std::vector<struct pollfd> polled = {{ended, POLLIN, 0}, {fronts, POLLIN, 0}};
    for (const auto& client : clients) polled.push_back({client.socket, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    for (std::size_t i = 2; i < polled.size(); ++i)
      if (polled[i].revents != 0 && !receive(clients[i - 2], main_of)) leave(clients[i - 2]);
    if (polled[0].revents != 0) {
      struct signalfd_siginfo taken;
      while (::read(ended, &taken, sizeof taken) > 0) {}
      reap(clients);
    }
    std::erase_if(clients, [](const auto& c) { return c.socket < 0 && c.process == 0; });
    if (polled[1].revents != 0) {
      const int socket = ::accept4(fronts, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) clients.push_back({socket, 0});
    }
  }
}
