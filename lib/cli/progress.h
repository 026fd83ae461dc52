#pragma once
// Progress on stderr, and reports.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run.h"
#include "core/json.h"

namespace cli {

/// Columns of the terminal that a descriptor is; 0: it is none.
std::size_t terminal_width(int descriptor);

/// How far something is: `made` of what is done was made here, in so many seconds; the rest was
/// there before.
struct Pace {
  std::uint64_t done, total, made;  ///< total 0: unknown
  double seconds;
};
/// "training: 300 updates (30 %), 10.0 updates/s, 1:10 left, loss 3.21"; no rate where nothing was
/// made yet. Of the unit "bytes" as KiB, MiB...
std::string progress_line(std::string_view what, std::string_view unit, const Pace& pace,
                          const std::string& note = {});

/// A line on stderr with rate and time left: redrawn at most 5 times a second on a terminal and cut
/// to its width, one line a minute elsewhere, nothing with -q. Erased when it ends.
class Progress {
 public:
  /// `total` 0: unknown. `unit` names what is counted ("tokens").
  Progress(const Context& context, std::string what, std::string unit, std::uint64_t total = 0);
  ~Progress();
  void set_total(std::uint64_t total) { total_ = total; }
  /// `done` so far; `note` is appended ("loss 3.21"). The rate is that since the first call, of
  /// which the rest may have been there before.
  void update(std::uint64_t done, const std::string& note = {});
  /// The same where stderr is no terminal: written at once, but for lines within a second after
  /// another that are not `important`.
  void line(std::uint64_t done, const std::string& note, bool important);
  /// update(done), for what counts as it works; the Progress must outlive it.
  std::function<void(std::uint64_t)> counter() {
    return [this](std::uint64_t done) { update(done); };
  }
  /// The same for what learns only as it works how much there is.
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

/// To stderr, as it is. What cannot be written there (closed, a full disk) is lost without an
/// error.
void to_stderr(std::string_view text);
/// One line to stderr unless -q: "name: text", by core::printable; none for an empty text.
void note(const Context& context, const std::string& text);
/// The same also with -q: a command that does not do what it says must say so.
void warn(const Context& context, const std::string& text);
/// note() as a function of the text. `context` must outlive it.
std::function<void(const std::string&)> noter(const Context& context);

/// One result: a JSON line with --json, else one "key  value" line a member. The text ends with a
/// newline.
std::string format_report(const Context& context, const core::OrderedJson& report);
/// A text as the output: -o, or stdout; whole or not at all.
void write_output(const Context& context, std::string_view text);
/// format_report() as the output.
void write_report(const Context& context, const core::OrderedJson& report);
/// A record, on stdout, of what was written elsewhere. Where stdout was closed from the start
/// nobody asked for it, and it is left out.
void write_receipt(const Context& context, const core::OrderedJson& report);
/// A result, and those of its parts as a table under it; with --json each line says its `type`,
/// report or part. Without parts format_report().
std::string format_parts(const Context& context, const core::OrderedJson& report,
                         const std::vector<core::OrderedJson>& parts);
/// Several results with the same keys: JSON lines with --json, else an aligned table with a
/// heading.
std::string format_table(const Context& context, const std::vector<core::OrderedJson>& rows);

}  // namespace cli
