#pragma once
// A program of the user's that says how good a model is.

#include <functional>
#include <optional>
#include <string>

namespace train {

/// Runs `command` by /bin/sh with the model's folder in the environment variable TESSERA_MODEL and,
/// quoted for the shell, for each {}. stdin is empty, stderr is this process's. Returns the last
/// number of its stdout. It has a process group of its own: when `stop` (asked a few times a
/// second) answers true the group gets SIGTERM, after ten seconds SIGKILL, and the result is none.
/// Throws Error{bad_data} if it fails or prints no number, Error{io} if it cannot be started.
std::optional<double> run_valid_command(const std::string& command, const std::string& folder,
                                        const std::function<bool()>& stop);

/// The last number of a text: 3, -0.5, 1e-3; digits within a word are none.
std::optional<double> last_number(const std::string& text);

}  // namespace train
