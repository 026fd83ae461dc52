#pragma once
// Writes progress to stderr, and reports.
// Runs work that shows its progress on stderr and stops at a signal.
// Formats a result whose list of parts may be empty.

#include <chrono>

#include "cli/run.h"

namespace cli {

/// Returns the number of columns of the terminal at `descriptor`; 0 if it is not a terminal.
std::size_t terminal_width(int descriptor);

/// A Pace is the state of a task: `done` of `total` items are done; this run did `made` of them in
/// `seconds`, and the rest were done before.
struct Pace {
  std::uint64_t done, total, made;  ///< a total of 0 means unknown
  double seconds;
};
/// Formats a line such as "training: 300 steps (30 %), 10.0 steps/s, 1:10 left, loss 3.21".
/// Omits the rate if this run has done nothing yet. Formats counts of the unit "bytes" as KiB, MiB
/// and so on.
std::string progress_line(
    std::string_view what, std::string_view unit, const Pace& pace, const std::string& note = {});

/// A Progress shows one line on stderr with the rate and the time left. On a terminal it redraws
/// the line at most 5 times a second and cuts it to the width; elsewhere it writes one line per
/// minute; with -q it writes nothing. Its destructor erases the line.
class Progress {
 public:
  /// Starts a progress line. `unit` names what is counted ("tokens"); a `total` of 0 means unknown.
  Progress(const Context& context, std::string what, std::string unit, std::uint64_t total = 0);
  ~Progress();
  void set_total(std::uint64_t total) { total_ = total; }
  /// Reports that `done` items are done; `note` is appended to the line ("loss 3.21"). The rate
  /// counts from the first call, because items may have been done before it.
  void update(std::uint64_t done, const std::string& note = {});
  /// Behaves like update(), but if stderr is not a terminal, writes the line at once. A line less
  /// than a second after the previous one is dropped unless it is `important`.
  void line(std::uint64_t done, const std::string& note, bool important);
  /// Returns a function that calls update(done), for code that counts its work; the Progress must
  /// outlive the function.
  std::function<void(std::uint64_t)> counter() {
    return [this](std::uint64_t done) { update(done); };
  }
  /// Returns a function like that of counter() which also sets the total, for work whose total
  /// becomes known only during the work.
  std::function<void(std::uint64_t, std::uint64_t)> counter_with_total() {
    return [this](std::uint64_t done, std::uint64_t total) {
      set_total(total);
      update(done);
    };
  }

 private:
  using Clock = std::chrono::steady_clock;
  void write(std::uint64_t done, Clock::time_point now, const std::string& note);
  std::string what_, unit_;
  std::uint64_t total_;
  bool terminal_, quiet_, drawn_ = false;
  Clock::time_point last_;
  std::optional<std::pair<std::uint64_t, Clock::time_point>> first_;
};

/// Writes `text` to stderr unchanged. Ignores errors, such as a closed stderr or a full disk.
void to_stderr(std::string_view text);
/// Writes the line "name: text" to stderr, made safe by core::printable, unless -q is given or the
/// text is empty.
void note(const Context& context, const std::string& text);
/// Behaves like note(), but also with -q. Use it if a command does not do what its options say.
void warn(const Context& context, const std::string& text);
/// Returns a function that calls note() with its argument. `context` must outlive it.
std::function<void(const std::string&)> noter(const Context& context);

/// Formats one result: a JSON line with --json, else one line "key  value" per member. The text
/// ends with a newline.
std::string format_report(const Context& context, const core::OrderedJson& report);
/// Writes a text to -o or stdout, through core::Output.
void write_output(const Context& context, std::string_view text);
/// Writes format_report() to -o or stdout.
void write_report(const Context& context, const core::OrderedJson& report);
/// Writes to stdout a record of what was written elsewhere. Does nothing if stdout was closed at
/// the start.
void write_receipt(const Context& context, const core::OrderedJson& report);
/// Formats a result and a table of its parts below it. With --json, each line has a `type`,
/// "report" or "part". Without parts, the text is that of format_report().
std::string format_parts(const Context& context, const core::OrderedJson& report,
    const std::vector<core::OrderedJson>& parts);
/// Formats several results with equal keys: JSON lines with --json, else an aligned table with a
/// header line.
std::string format_table(const Context& context, const std::vector<core::OrderedJson>& rows);

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

/// Behaves like format_parts(), but with --json adds the `type` also to a result without parts.
inline std::string format_typed_parts(const Context& context, const core::OrderedJson& report,
    const std::vector<core::OrderedJson>& parts) {
  if (!context.json || !parts.empty()) return format_parts(context, report, parts);
  core::OrderedJson typed = {{"type", "report"}};
  typed.update(report);
  return format_report(context, typed);
}

}  // namespace cli
