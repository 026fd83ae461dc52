#pragma once
// Runs a user's program that scores a model.

#include <functional>
#include <optional>
#include <string>

namespace train {

/// Runs `command` with /bin/sh. The environment variable TESSERA_MODEL and, shell-quoted, each {}
/// contain the model's folder. stdin is empty, stderr is inherited. Returns the last number on its
/// stdout. The command has its own process group: when `stop` (polled a few times a second) returns
/// true, the group receives SIGTERM, after ten seconds SIGKILL, and the result is nullopt. Throws
/// Error{bad_data} if it fails or prints no number, Error{io} if it cannot be started.
std::optional<double> run_valid_command(const std::string& command, const std::string& folder,
                                        const std::function<bool()>& stop);

/// Returns the last number of a text, such as 3, -0.5 or 1e-3; ignores digits within words.
std::optional<double> last_number(const std::string& text);

}  // namespace train
