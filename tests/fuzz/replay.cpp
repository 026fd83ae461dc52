// fuzz TARGET FILE|FOLDER...: runs a fuzz target of this program on each named file, then on inputs
// made from them. It is a libFuzzer main without libFuzzer. If the target can repair checksums
// (target.h), it does so for every second input made. Without arguments it lists the targets.
//
//   TESSERA_ATTACK_RUNS=N    number of inputs made [5000]
//   TESSERA_ATTACK_FIRST=N   number of the first input [0]
//   TESSERA_ATTACK_SEED=N    seed of the series [1]
//
// An input fails if the target aborts, crashes or throws an exception, if it takes more than 30
// seconds of CPU time, or if memory grows by more than 1 GiB. The last line then says how to run
// the input again.

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "fuzz/mutator.h"
#include "fuzz/target.h"

// A sanitizer's function, if one is linked.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;

constexpr int kMostSeconds = 30;
constexpr long kMostKiB = 1 << 20;

char where[4200];  // the current input, for a crash message
// The default actions of the signals of faults.
std::pair<int, struct sigaction> actions[] = {
    {SIGSEGV, {}}, {SIGBUS, {}}, {SIGFPE, {}}, {SIGILL, {}}, {SIGABRT, {}}, {SIGPROF, {}}};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

void say_where() {
  std::strcat(where, "\n");
  const auto written = ::write(STDERR_FILENO, where, std::strlen(where));
  static_cast<void>(written);
}

// Prints the input, then lets the default action happen.
void die(int number) {
  if (number == SIGPROF) std::strcat(where, " (too slow)");
  if (__sanitizer_set_death_callback == nullptr) say_where();
  for (const auto& [other, action] : actions) ::sigaction(other, &action, nullptr);
  ::raise(number);
}

void watch() {
  static std::vector<char> stack(64 << 10);  // for a signal handler after a stack overflow
  const stack_t other{stack.data(), 0, stack.size()};
  ::sigaltstack(&other, nullptr);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(say_where);
  } else {
    // An allocation of a terabyte fails instead of exhausting the machine.
    const rlimit limit{4 * kMostKiB * 1024, 4 * kMostKiB * 1024};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  struct sigaction action {};
  action.sa_handler = die;
  action.sa_flags = SA_ONSTACK;
  for (auto& [number, before] : actions) ::sigaction(number, &action, &before);
}

long peak_kib() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void run(const fuzz::Target& target, const fuzz::Bytes& bytes) {
  const long before = peak_kib();
  const itimerval limit{{0, 0}, {kMostSeconds, 0}}, none{};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  target.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  ::setitimer(ITIMER_PROF, &none, nullptr);
  if (peak_kib() - before > kMostKiB) {
    std::strcat(where, " (too much memory)");
    std::abort();
  }
}

std::vector<fs::path> files_of(int argc, char** argv) {
  std::vector<fs::path> paths;
  for (int i = 2; i < argc; ++i) {
    if (fs::is_directory(argv[i])) {
      for (const auto& entry : fs::directory_iterator(argv[i])) paths.push_back(entry.path());
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  // Sorts by file name, independent of the order in the folder and of parent folders.
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename(), a) < std::pair(b.filename(), b);
  });
  return paths;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, target] : fuzz::targets()) std::puts(name.c_str());
    return 0;
  }
  const auto found = fuzz::targets().find(argv[1]);
  if (found == fuzz::targets().end()) {
    std::fprintf(
        stderr, "%s: is no target of this program; without arguments it lists them\n", argv[1]);
    return 64;
  }
  const fuzz::Target& target = found->second;
  watch();
  std::vector<fuzz::Bytes> corpus;
  for (const auto& path : files_of(argc, argv)) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s: cannot open\n", path.c_str());
      return 66;
    }
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    corpus.emplace_back(data, data + text.size());
    std::snprintf(where, sizeof where - 100, "failed: %s", path.c_str());
    run(target, corpus.back());
  }
  if (corpus.empty()) return 1;

  const fuzz::Mutator mutator(corpus);
  const auto seed = setting("TESSERA_ATTACK_SEED", 1), first = setting("TESSERA_ATTACK_FIRST", 0),
             runs = setting("TESSERA_ATTACK_RUNS", 5000);
  for (auto number = first; number < first + runs; ++number) {
    std::snprintf(where, sizeof where - 100,
        "failed: TESSERA_ATTACK_SEED=%llu TESSERA_ATTACK_FIRST=%llu "
        "TESSERA_ATTACK_RUNS=1 runs it again",
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(number));
    auto bytes = mutator.make(seed, number);
    if (target.repair != nullptr && number % 2 == 1) {
      try {
        target.repair(bytes);
      } catch (const core::Error&) {  // the rest stays unrepaired
      }
    }
    run(target, bytes);
  }
  std::printf(
      "%zu inputs, %llu made of them\n", corpus.size(), static_cast<unsigned long long>(runs));
  return 0;
}
