#pragma once
// Work that says what it is doing: its progress on stderr, and where a signal stops it.

#include <cstdint>
#include <string>

#include "cli/progress.h"
#include "core/error.h"

namespace cli {

/// What work(watch) gives; watch(step, done, total) shows a step, counted in `unit`. Between two
/// calls a signal that catch_stop_signals() caught stops it: throws Error{stopped}.
template <class Work>
auto watched(const Context& context, const char* what, const char* unit, const Work& work) {
  Progress progress(context, what, unit);
  return work([&](const std::string& step, std::uint64_t done, std::uint64_t total) {
    if (stop_requested())
      core::fail(core::Code::stopped, "stopped; what was done is kept: run it again to go on");
    progress.set_total(total);
    progress.update(done, step);
  });
}

}  // namespace cli
