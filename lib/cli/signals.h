#pragma once
// Handles the signals that end or stop a program.

namespace cli {

/// Installs the default handlers: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE remove
/// temporary files and end the process; SIGXFSZ makes the write fail. A signal that the caller
/// ignores stays ignored.
void install_handlers();

/// Changes the handlers so that the first SIGTERM, SIGINT, SIGHUP, SIGUSR1 or SIGUSR2 only makes
/// stop_requested() true; a second one ends the process.
void catch_stop_signals();
bool stop_requested();

}  // namespace cli
