#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <tuple>

#include "core/hash.h"
#include "front/fork_server.h"

namespace front {
namespace {

// Beginnings of the names of variables that the loader, the C library, OpenMP, MKL or LibTorch may
// read before main().
constexpr std::string_view kReadByLibraries[] = {"LD_", "GLIBC_", "MALLOC_", "OMP_", "GOMP_",
    "KMP_", "MKL_", "ATEN_", "TORCH_", "PYTORCH_", "C10_", "CUDA_", "DNNL_", "OPENBLAS_", "GOTO_",
    "FAISS_"};

std::string identity(const std::string& path, bool with_time) {
  struct stat s = {};
  if (::stat(path.c_str(), &s) != 0) return "none";
  const auto time = with_time ? s.st_mtim : timespec{};
  return fmt::format("{} {} {} {}", s.st_dev, s.st_ino, time.tv_sec, time.tv_nsec);
}

// Those that the process began with: a preloaded library may have removed LD_PRELOAD.
std::string library_variables() {
  std::vector<std::string> variables;
  std::ifstream file("/proc/self/environ", std::ios::binary);
  for (std::string variable; std::getline(file, variable, '\0');)
    for (const auto name : kReadByLibraries)
      if (variable.starts_with(name)) variables.push_back(variable);
  std::sort(variables.begin(), variables.end());
  return fmt::format("{}", fmt::join(variables, "\n"));
}

std::string process_limits() {
  std::string text;
  for (int i = 0; i < RLIMIT_NLIMITS; ++i) {
    struct rlimit limit = {};
    ::getrlimit(static_cast<__rlimit_resource_t>(i), &limit);
    text += fmt::format("{}:{} ", limit.rlim_cur, limit.rlim_max);
  }
  cpu_set_t processors;
  CPU_ZERO(&processors);
  ::sched_getaffinity(0, sizeof processors, &processors);
  for (int i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &processors) ? '1' : '0';
  return text;
}

std::string user_and_namespaces() {
  std::string text = fmt::format("{} {} {} {}", ::getuid(), ::geteuid(), ::getgid(), ::getegid());
  for (const char* name : {"mnt", "net", "pid", "user", "ipc", "uts", "cgroup"})
    text += " " + identity(std::string("/proc/self/ns/") + name, false);
  return text + " " + identity("/", false);
}

void append_number(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

std::string socket_path(const std::string& folder, const std::string& library) {
  const std::string all = fmt::format("{}\n{}\n{}\n{}\n", identity(library, true),
      library_variables(), process_limits(), user_and_namespaces());
  return folder + "/" + core::hash128(all).hex();
}

int Request::write() const {
  std::string text;
  for (const std::uint64_t n : {std::uint64_t{arguments.size()}, std::uint64_t{environment.size()},
           std::uint64_t{descriptors.size()}, std::uint64_t{mask}, ignored, blocked})
    append_number(text, n);
  for (const int descriptor : descriptors)
    append_number(text, static_cast<std::uint64_t>(descriptor));
  for (const auto* const list : {&arguments, &environment})
    for (const auto& entry : *list) text.append(entry.c_str(), entry.size() + 1);
  const int file = ::memfd_create("request", MFD_CLOEXEC);
  if (file < 0 || ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    return file;
  ::close(file);
  return -1;
}

Request Request::read(int file) {
  const auto bytes = static_cast<std::size_t>(std::max<off_t>(0, ::lseek(file, 0, SEEK_END)));
  std::string text(bytes, '\0');
  std::ignore = ::pread(file, text.data(), bytes, 0);
  const char* at = text.data();
  const auto number = [&] {
    std::uint64_t value = 0;
    std::copy_n(at, sizeof value, reinterpret_cast<char*>(&value));
    at += sizeof value;
    return value;
  };
  std::array<std::uint64_t, 6> head = {};
  for (auto& value : head) value = number();
  Request request = {.mask = static_cast<mode_t>(head[3]), .ignored = head[4], .blocked = head[5]};
  for (std::uint64_t i = 0; i < head[2]; ++i)
    request.descriptors.push_back(static_cast<int>(number()));
  for (auto* const list : {&request.arguments, &request.environment}) {
    const auto count = list == &request.arguments ? head[0] : head[1];
    for (std::uint64_t i = 0; i < count; ++i) at += list->emplace_back(at).size() + 1;
  }
  return request;
}

}  // namespace front
