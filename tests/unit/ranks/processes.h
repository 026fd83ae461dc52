#pragma once
// Several processes for a test: children of this one, on the loopback.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "ranks/group.h"
#include "unit/temporary_folder.h"

/// The exit code of a process, and what its body returned or threw.
struct Ended {
  int code = 0;
  std::string text;
};

using RankBody = std::function<std::string(ranks::Group&)>;

/// Runs `body` as each of `size` ranks that meet as `launch` says, by default by a file in run/ of
/// an empty current folder. An Error's code is the exit code. This process must not have used
/// torch's threads, which do not survive a fork.
inline std::vector<Ended> run_ranks(int size, const RankBody& body, core::Launch launch = {},
    std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  const TemporaryFolder scratch;
  std::vector<pid_t> children;
  const auto file = [&](int rank) { return scratch / std::to_string(rank); };
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    Ended ended;
    try {
      at::set_num_threads(1);
      std::filesystem::current_path(scratch.path);
      launch.rank = rank;
      launch.size = size;
      const auto group = ranks::Group::join(launch, "run", timeout);
      ended.text = body(*group);
    } catch (const core::Error& error) {
      ended = {static_cast<int>(error.code()), error.what()};
    } catch (const std::exception& error) { ended = {70, error.what()}; }
    std::ofstream(file(rank), std::ios::binary) << ended.text;
    ::_exit(ended.code);
  }
  std::vector<Ended> all;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ::waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    std::ifstream in(file(rank), std::ios::binary);
    all.push_back({WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        std::string(std::istreambuf_iterator<char>(in), {})});
  }
  return all;
}
