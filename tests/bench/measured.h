#pragma once
// Runs a part of a benchmark in its own process, which gives its own peak memory.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench {

struct Measured {
  double seconds, bytes;
};

template <class F> double seconds_of(const F& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `prepare` in a child process and measures the function that it returns, whose result is its
/// seconds. Bytes are the growth of the process during that function. Ends this process if the
/// child fails.
template <class Prepare> Measured in_child(const Prepare& prepare) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(74);
  const pid_t child = ::fork();
  if (child == 0) {
    auto run = prepare();
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    Measured found{run(), 0};
    ::getrusage(RUSAGE_SELF, &after);
    found.bytes = 1024.0 * static_cast<double>(after.ru_maxrss - before.ru_maxrss);
    const bool sent = ::write(ends[1], &found, sizeof found) == sizeof found;
    ::_exit(sent ? 0 : 74);
  }
  Measured found{};
  const bool received = ::read(ends[0], &found, sizeof found) == sizeof found;
  ::close(ends[0]), ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  if (!received) std::exit(70);
  return found;
}

/// Prints a figure as a JSON line.
inline void print(const std::string& name, double value, const char* unit, const std::string& peer,
    double other, double ratio) {
  std::printf(
      "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g}\n",
      name.c_str(), value, unit, peer.c_str(), other, ratio);
  std::fflush(stdout);
}

}  // namespace bench
