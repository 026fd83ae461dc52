#pragma once
// What the functions of include/tessera share. Not installed.

#include "core/options.h"
#include "tessera/error.h"
#include "tessera/options.h"

namespace tessera {

/// What start() was called with.
struct Process {
  std::int64_t threads = 0;
  std::uint64_t seed = 1;
  std::function<void(const std::string&)> note = [](const std::string&) {};
};
/// Returns it; calls start() if nobody has.
const Process& process();

/// Passes a note on unless it is empty.
void send_note(const std::string& note);

/// Runs `work`. Throws Error for a core::Error.
template <class Work> std::invoke_result_t<Work> translated(const Work& work) {
  try {
    return work();
  } catch (const core::Error& error) { throw Error(static_cast<int>(error.code()), error.what()); }
}

/// Sets the fields of `options` and returns their names. Throws core::Error{usage}.
std::set<std::string> set_fields(const core::FieldList& fields, const Options& options);

}  // namespace tessera
