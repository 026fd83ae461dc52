#include "cli/signals.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "core/io.h"

namespace cli {
namespace {

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_catch = 0;

// Ends the process as without a handler, after removing the temporary files.
void die_of(int number) {
  core::remove_temporaries();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

std::int64_t monotonic_ms() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

// Without catch_stop_signals() the signal ends the program. With it, a second signal does. Signals
// in quick succession count as one: a batch system sends one to the process and one to its group.
extern "C" void on_stop_signal(int number) {
  constexpr std::int64_t kSameStopMs = 1000;
  static std::atomic<std::int64_t> stopped_at{0};
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
  if (g_catch && !g_stop) {
    stopped_at = monotonic_ms();
    g_stop = 1;
    return;
  }
  if (g_stop && monotonic_ms() - stopped_at < kSameStopMs) return;
  die_of(number);
}

// The reader of the output has exited; the program cannot treat this as a stop.
extern "C" void on_broken_pipe(int number) { die_of(number); }

// A file that may not grow (ulimit -f). The write then fails with an ordinary error; the default
// would end the process and leave temporary files.
extern "C" void on_file_limit(int) {}

// Keeps ignoring a signal that the caller of the program ignores.
void handle(int number, void (*handler)(int)) {
  struct sigaction action {
  }, old{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, nullptr, &old);
  if (old.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
}

}  // namespace

void install_handlers() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    handle(number, on_stop_signal);
  handle(SIGPIPE, on_broken_pipe);
  handle(SIGXFSZ, on_file_limit);
}

void catch_stop_signals() { g_catch = 1; }
bool stop_requested() { return g_stop != 0; }

}  // namespace cli
