#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <cctype>

#include "cli/flags.h"
#include "cli/requests.h"

namespace cli {
namespace {

constexpr std::size_t kColumn = 30, kLeastText = 30, kNarrowColumn = 6;
constexpr const char* kOwn = "Options";

std::string group_of(const CLI::Option& option) {
  const std::string& group = option.get_group();
  return group == "OPTIONS" ? kOwn : group;
}

std::string word_for(std::string heading) {
  std::transform(heading.begin(), heading.end(), heading.begin(),
      [](unsigned char c) { return c == ' ' ? '-' : static_cast<char>(std::tolower(c)); });
  return heading;
}

// Wraps `text`, whose lines begin at `column`, with hanging indent.
std::string wrapped(const std::string& text, std::size_t column, std::size_t width) {
  if (width == 0) return text + "\n";
  const std::size_t room = width - column;
  std::string lines;
  std::size_t at = 0;
  while (text.size() - at > room) {
    auto end = text.rfind(' ', at + room);
    if (end == text.npos || end <= at) end = std::min(text.find(' ', at), text.size());
    if (end == text.size()) break;
    lines += text.substr(at, end - at) + "\n" + std::string(column, ' ');
    at = end + 1;
  }
  return lines + text.substr(at) + "\n";
}

std::string row_of(const CLI::Option& option, std::size_t width) {
  std::string left = flags_of(option), text = option.get_description();
  if (left.empty()) {
    left = option.get_name() + (option.get_items_expected_max() > 1 ? " ..." : "");
    return help_row(left, text, width);
  }
  const auto type = option.get_items_expected_max() > 0 ? option.get_type_name() : "";
  const auto value = option.get_default_str().empty() ? "" : "=" + option.get_default_str();
  const auto whole = left + (type.empty() ? "" : " ") + type + value;
  if (width == 0 || whole.size() + 2 <= width || type.find('|') == type.npos)
    return help_row(whole, text, width);
  // The choices do not fit beside the option's name.
  text += ": ";
  for (const char c : type) text += c == '|' ? std::string(", ") : std::string(1, c);
  return help_row(left + " NAME" + value, text, width);
}

bool is_positional(const CLI::Option& option) { return flags_of(option).empty(); }

std::vector<std::string> headings_of(const CLI::App& app) {
  std::vector<std::string> headings;
  for (const auto* option : app.get_options()) {
    const auto heading = group_of(*option);
    if (is_positional(*option) || heading == kSharedGroup) continue;
    if (std::find(headings.begin(), headings.end(), heading) == headings.end())
      headings.push_back(heading);
  }
  headings.emplace_back(kSharedGroup);
  return headings;
}

std::string group_text(const CLI::App& app, const std::string& heading, std::size_t width) {
  std::string text = "\n" + heading + ":\n";
  for (const auto* option : app.get_options())
    if (!is_positional(*option) && group_of(*option) == heading) text += row_of(*option, width);
  return text;
}

std::string start_text(const CLI::App& app, const Program& program, std::size_t width) {
  std::string name = app.get_name(), arguments;
  std::string usage = name + " " + (program.usage.empty() ? "[OPTIONS]" : program.usage);
  if (const auto* parent = app.get_parent()) usage = parent->get_name() + " " + usage;
  for (const auto* option : app.get_options()) {
    if (!is_positional(*option)) continue;
    const bool many = option->get_items_expected_max() > 1;
    usage += " [" + option->get_name() + (many ? "...]" : "]");
    arguments += row_of(*option, width);
  }
  const auto verbs = app.get_subcommands(nullptr);
  if (!verbs.empty()) usage += " COMMAND";
  std::string text = program.summary + "\nUsage: " + usage + "\n";
  if (!arguments.empty()) text += "\n" + arguments;
  if (!verbs.empty()) {
    text += "\nSubcommands:\n";
    for (const auto* verb : verbs)
      text += help_row(verb->get_name(), verb->get_description(), width);
  }
  return text;
}

std::string asked_groups(const CLI::App& app, const std::string& what, std::size_t width) {
  std::string text;
  std::vector<std::string> words = {"all"};
  for (const auto& heading : headings_of(app)) {
    const auto word = word_for(heading);
    words.push_back(word);
    if (what == "all" || word == what || (!what.empty() && word.starts_with(what)))
      text += group_text(app, heading, width);
  }
  if (text.empty())
    core::bad_usage(
        "--help={}: no group of options; there are {}", what, CLI::detail::join(words, ", "));
  return text;
}

std::string used_most(const CLI::App& app, const Program& program, std::size_t width) {
  std::string text = "\nMost used options:\n";
  for (const auto& name : program.used_most) text += row_of(*app.get_option("--" + name), width);
  std::vector<std::string> words;
  for (const auto& heading : headings_of(app)) words.push_back(word_for(heading));
  return text + "\n" +
         help_row("--help=all",
             "all options, or those of one group: " + CLI::detail::join(words, ", "), width);
}

}  // namespace

std::string help_row(std::string left, const std::string& text, std::size_t width) {
  left = "  " + left;
  if (text.empty()) return left + "\n";
  const bool narrow = width > 0 && width < kColumn + kLeastText;
  const std::size_t column = narrow ? kNarrowColumn : kColumn;
  if (narrow || left.size() + 2 > column) left += "\n" + std::string(column, ' ');
  else left.resize(column, ' ');
  return left + wrapped(text, column, narrow ? std::max(width, 2 * kNarrowColumn) : width);
}

std::string take_help(std::vector<std::string>& arguments) {
  constexpr std::string_view kFlag = "--help";
  std::string what;
  for (auto& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--help=")) continue;
    what = argument.substr(kFlag.size() + 1);
    argument = kFlag;
  }
  return what;
}

std::string help_text(
    const CLI::App& app, const Program& program, const std::string& what, std::size_t width) {
  std::string text = start_text(app, program, width);
  text += !what.empty()               ? asked_groups(app, what, width)
          : program.used_most.empty() ? asked_groups(app, "all", width)
                                      : used_most(app, program, width);
  if (!program.example.empty()) text += "\nExample:\n" + program.example + "\n";
  return text;
}

}  // namespace cli
