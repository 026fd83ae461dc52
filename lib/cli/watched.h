#pragma once
// Runs work that shows its progress on stderr and stops at a signal.

#include <cstdint>
#include <string>

#include "cli/progress.h"
#include "core/error.h"

namespace cli {

/// Calls work(watch) and returns its result. The work calls watch(step, done, total) to show a
/// step, counted in `unit`. If catch_stop_signals() caught a signal, the next such call throws
/// Error{stopped}.
template <class Work>
auto watched(const Context& context, const char* what, const char* unit, const Work& work) {
  Progress progress(context, what, unit);
  return work([&](const std::string& step, std::uint64_t done, std::uint64_t total) {
    if (stop_requested())
      core::fail(core::Code::stopped, "stopped; finished work is kept; rerun to resume");
    progress.set_total(total);
    progress.update(done, step);
  });
}

}  // namespace cli
