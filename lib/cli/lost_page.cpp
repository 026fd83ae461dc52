#include "cli/lost_page.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>

#include "cli/progress.h"
#include "core/error.h"
#include "core/io.h"
#include "core/printable.h"

namespace cli {
namespace {

std::string g_program;

// Returns the file whose mapping contains the address; empty if none is known.
std::string file_at(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const auto path = line.find('/');
    if (begin <= address && address < end && path != line.npos) return line.substr(path);
  }
  return {};
}

// Runs on a memory access outside the C library, so it may call functions that are not signal safe.
extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  const std::string file = info->si_code == BUS_ADRERR
                               ? file_at(reinterpret_cast<std::uintptr_t>(info->si_addr))
                               : std::string();
  if (file.empty()) {
    ::signal(number, SIG_DFL);  // the read is repeated and ends the process
    return;
  }
  core::remove_temporaries();
  to_stderr(
      fmt::format("{}: {}: was cut short while it was read\n", g_program, core::printable(file)));
  ::_exit(static_cast<int>(core::Code::io));
}

}  // namespace

void catch_lost_pages(const std::string& program) {
  g_program = program;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cli
