#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "core/io.h"
#include "core/plain_text.h"
#include "core/units.h"

namespace cli {
namespace {

std::string cell(const core::OrderedJson& value) {
  if (value.is_string()) return core::printable(value.get<std::string>());
  const bool known =
      !value.is_null() && !(value.is_number_float() && std::isnan(value.get<double>()));
  if (!known) return "-";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return core::dump(value);
}

// Formats a figure of a report; adds a readable form to large byte counts and to hours.
std::string cell(const std::string& key, const core::OrderedJson& value) {
  std::string plain = cell(value);
  const bool is_bytes = key.ends_with("bytes") || key.ends_with("_memory");
  if (is_bytes && value.is_number() && value.get<double>() >= 1024)
    return fmt::format("{} ({})", plain, core::format_bytes(value.get<double>()));
  const bool is_seconds = key.ends_with("_s") && !key.ends_with("per_s");
  if (is_seconds && value.is_number() && value.get<double>() >= 3600)
    return fmt::format("{} ({:.1f} h)", plain, value.get<double>() / 3600);
  if (key == "hours" && value.is_number())
    return fmt::format("{} ({})", plain, core::format_duration(3600 * value.get<double>()));
  return plain;
}

}  // namespace

std::size_t terminal_width(int descriptor) {
  struct winsize size {};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Progress::Progress(const Context& context, std::string what, std::string unit, std::uint64_t total)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total),
      terminal_(::isatty(STDERR_FILENO)), quiet_(context.quiet), last_(Clock::now()) {}

Progress::~Progress() {
  if (drawn_ && terminal_) to_stderr("\r\033[K");
}

void Progress::update(std::uint64_t done, const std::string& note) {
  if (quiet_) return;
  const auto now = Clock::now();
  if (!first_) first_.emplace(done, now);
  if (now - last_ <
      (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(60'000)))
    return;
  write(done, now, note);
}

void Progress::line(std::uint64_t done, const std::string& note, bool important) {
  if (terminal_ || quiet_) return;
  const auto now = Clock::now();
  if (drawn_ && !important && now - last_ < std::chrono::seconds(1)) return;
  if (!first_) first_.emplace(done, now);
  write(done, now, note);
}

void Progress::write(std::uint64_t done, Clock::time_point now, const std::string& note) {
  last_ = now;
  drawn_ = true;
  const auto& [before, start] = *first_;
  std::string text = progress_line(what_, unit_,
      {done, total_, done - before, std::chrono::duration<double>(now - start).count()}, note);
  if (!terminal_) return to_stderr(text + "\n");
  if (const auto width = terminal_width(STDERR_FILENO); width > 0 && text.size() >= width)
    text.resize(width - 1);  // a line that wraps is not erased completely
  to_stderr("\r\033[K" + text);
}

std::string progress_line(
    std::string_view what, std::string_view unit, const Pace& pace, const std::string& note) {
  const auto done = static_cast<double>(pace.done), total = static_cast<double>(pace.total);
  const bool bytes = unit == "bytes";
  std::string text = bytes ? fmt::format("{}: {}", what, core::format_bytes(done))
                           : fmt::format("{}: {:.0f} {}", what, done, unit);
  if (pace.total > 0) text += fmt::format(" ({:.0f} %)", 100 * done / total);
  if (pace.made > 0 && pace.seconds > 0) {
    const double rate = static_cast<double>(pace.made) / pace.seconds;
    text += bytes ? fmt::format(", {}/s", core::format_bytes(rate))
                  : fmt::format(", {:.1f} {}/s", rate, unit);
    if (total > done)
      text += fmt::format(", {} left", core::format_duration((total - done) / rate));
  }
  return note.empty() ? text : text + ", " + note;
}

void to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void note(const Context& context, const std::string& text) {
  if (!context.quiet) warn(context, text);
}

void warn(const Context& context, const std::string& text) {
  if (!text.empty())
    to_stderr(fmt::format("{}: {}\n", context.program.name, core::printable(text)));
}

std::function<void(const std::string&)> noter(const Context& context) {
  return [&context](const std::string& text) { note(context, text); };
}

std::string format_report(const Context& context, const core::OrderedJson& report) {
  if (context.json) return core::dump(report) + "\n";
  std::size_t width = 0;
  for (const auto& [key, value] : report.items()) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : report.items())
    text += fmt::format("{:<{}}  {}\n", key, width, cell(key, value));
  return text;
}

void write_output(const Context& context, std::string_view text) {
  core::write_file(context.output, text);
}

void write_report(const Context& context, const core::OrderedJson& report) {
  write_output(context, format_report(context, report));
}

void write_receipt(const Context& context, const core::OrderedJson& report) {
  if (!stdout_was_closed()) core::write_file("-", format_report(context, report));
}

std::string format_parts(const Context& context, const core::OrderedJson& report,
    const std::vector<core::OrderedJson>& parts) {
  if (parts.empty()) return format_report(context, report);
  if (!context.json) return format_report(context, report) + "\n" + format_table(context, parts);
  const auto line = [](const char* type, const core::OrderedJson& figures) {
    core::OrderedJson typed = {{"type", type}};
    typed.update(figures);
    return core::dump(typed) + "\n";
  };
  return line("report", report) +
         core::sum_of(parts, [&](const auto& part) { return line("part", part); });
}

std::string format_table(const Context& context, const std::vector<core::OrderedJson>& rows) {
  if (context.json)
    return core::sum_of(rows, [](const auto& row) { return core::dump(row) + "\n"; });
  std::string text;
  if (rows.empty()) return text;
  std::vector<std::vector<std::string>> cells(rows.size() + 1);
  std::vector<bool> numeric;
  for (const auto& [key, value] : rows[0].items()) {
    cells[0].push_back(key);
    numeric.push_back(value.is_number());
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const auto& [key, value] : rows[r].items()) cells[r + 1].push_back(cell(value));
  std::vector<std::size_t> widths(cells[0].size(), 0);
  for (const auto& row : cells)
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      line += numeric[c] ? fmt::format("{:>{}}  ", row[c], widths[c])
                         : fmt::format("{:<{}}  ", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace cli
