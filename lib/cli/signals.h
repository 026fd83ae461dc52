#pragma once
// Signals that end a program, or that it may catch and stop.

namespace cli {

/// SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE remove temporary files before they end the
/// process; SIGXFSZ makes the write fail. A signal that the caller ignores stays ignored.
void install_handlers();

/// From here on SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 only make stop_requested() true; a
/// second one ends the process.
void catch_stop_signals();
bool stop_requested();

}  // namespace cli
