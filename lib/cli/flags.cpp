#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <cctype>

#include "core/build_info.h"
#include "core/io.h"
#include "core/path_kind.h"
#include "core/units.h"

namespace cli {
namespace {

const char* type_name(const core::Field& field) {
  if (field.size) return "BYTES";
  constexpr const char* kNames[] = {"", "N", "X", "TEXT", "TEXT", "N", "X"};
  return kNames[field.target.index()];
}

// Formats a value as a user would type it: bytes in the largest unit.
std::string default_text(const core::Field& field) {
  const auto texts = core::to_strings(field);
  if (const auto* const bytes = std::get_if<std::int64_t*>(&field.target);
      bytes && field.size && !field.word_for(static_cast<double>(**bytes)))
    return core::format_count(static_cast<double>(**bytes), 1024);
  return field.is_list() ? fmt::format("{}", fmt::join(texts, ",")) : texts[0];
}

// Describes the accepted values, and the meaning of an absent value without a default to show.
std::string full_help(const core::Field& field) {
  const std::string range = field.range();
  std::string help = range.empty() ? field.help : fmt::format("{} ({})", field.help, range);
  if (field.positional || std::holds_alternative<bool*>(field.target)) return help;
  if (field.required) return help + " [required]";
  if (default_text(field).empty() && !field.help.ends_with(']')) help += " [not set]";
  return help;
}

// Finds the argument that nothing accepts: an unknown flag or command, or an unexpected argument.
std::string unexpected(const CLI::App& app) {
  const std::string word = app.remaining(true).front();
  const auto verbs = app.get_subcommands();
  const CLI::App& asked = verbs.empty() ? app : *verbs.front();
  if (word.starts_with('-')) {
    std::vector<std::string> flags;
    bool takes_files = false;
    for (const auto* option : asked.get_options()) {
      takes_files = takes_files || option->get_positional();
      for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
    }
    const std::string flag = word.substr(0, word.find('='));
    if (std::ranges::find(flags, flag) != flags.end()) return flag + ": must follow the command";
    const std::string hint = hint_for_other_name(flag, flags, takes_files);
    return fmt::format(
        "{}: no such option{}", flag, hint.empty() ? core::did_you_mean(flag, flags) : hint);
  }
  const auto commands =
      core::mapped(app.get_subcommands(nullptr), std::mem_fn(&CLI::App::get_name));
  if (!commands.empty() && verbs.empty()) {
    const std::string near = core::did_you_mean(word, commands);
    return fmt::format("{}: no such command{}", word,
        near.empty() ? fmt::format("; there are {}", fmt::join(commands, ", ")) : near);
  }
  const auto* const model = asked.get_option_no_throw("--model");
  if (model != nullptr && core::path_kind(word) == core::PathKind::model)
    return word + ": unexpected argument; -m takes a model";
  return word + ": unexpected argument";
}

// Shortens CLI11's text about a missing value, "--tune: 1 required TEXT missing".
std::string mismatch(const std::string& text) {
  return text.ends_with(" missing") ? text.substr(0, text.find(':')) + ": its value is missing"
                                    : text;
}

// Returns the text before the first `end`, and removes it and `end` from `text`.
std::string_view taken(std::string_view& text, char end) {
  const auto piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  return piece;
}

// Returns true if `name` is one of the words.
bool is_among(std::string_view words, std::string_view name) {
  while (!words.empty())
    if (taken(words, ' ') == name) return true;
  return false;
}

constexpr std::size_t kColumn = 30, kLeastText = 30, kNarrowColumn = 6;
constexpr const char* kOwn = "Options";

std::string group_of(const CLI::Option& option) {
  const std::string& group = option.get_group();
  return group == "OPTIONS" ? kOwn : group;
}

std::string word_for(std::string heading) {
  std::ranges::transform(heading, heading.begin(),
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

// Returns the names of a flag, "-o,--output"; empty for an argument without a flag.
std::string flags_of(const CLI::Option& option) {
  auto names = core::mapped(option.get_snames(), [](const auto& name) { return "-" + name; });
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return CLI::detail::join(names, ",");
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
    if (std::ranges::find(headings, heading) == headings.end()) headings.push_back(heading);
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
  const auto words = core::mapped(headings_of(app), word_for);
  return text + "\n" +
         help_row("--help=all",
             "all options, or those of one group: " + CLI::detail::join(words, ", "), width);
}

constexpr double kMostSeed = 4e18;  // within 63 bits
constexpr int kMostJobs = 1024;

int print_version(const Context& context, bool details) {
  namespace build = core::build;
  std::string text =
      fmt::format("{} {} (git {})\n", context.program.name, build::kVersion, build::kGit);
  if (details) {
    text += fmt::format(
        "compiler  {}\nflags     {}\nLibTorch  {}\nFAISS     {}\nCUDA      {}\nothers    {}\n",
        build::kCompiler, build::kFlags, build::kTorch, build::kFaiss, build::kCuda,
        build::kLibraries);
  }
  return print(text);
}

std::string names_of(const CLI::Option& option) {
  const auto flags = flags_of(option);
  return flags.empty() ? option.get_name() : flags;
}

void add_flags(const CLI::App& app, const std::string& command, std::string& table) {
  for (const CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    table += command + '\t' + names_of(*option) + '\t' +
             (takes_value ? option->get_type_name() : std::string()) + '\t' +
             option->get_default_str() + '\t' + option->get_description() + '\t' +
             option->get_group() + '\n';
  }
}

// Returns one tab-separated line per flag: its command (for a program with commands), its names
// (-o,--output; FILE for an argument without a flag), its value (empty for a switch; N, X, TEXT,
// FILE, PATH, BYTES, or the choices as a|b), the default, the help. A command itself is a line
// with only its name and help.
std::string flag_table(const CLI::App& app) {
  std::string table;
  add_flags(app, app.get_parent() ? app.get_name() : std::string(), table);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    table += command->get_name() + "\t\t\t\t" + command->get_description() + "\t\n";
    add_flags(*command, command->get_name(), table);
  }
  return table;
}

}  // namespace

std::unique_ptr<CLI::App> make_app(const Program& program) {
  return std::make_unique<CLI::App>(program.summary, program.name);
}

void add_field(CLI::App& app, const core::Field& field, Context& context) {
  const auto store = [&field, &context](const std::vector<std::string>& values) {
    core::assign(field, values);
    context.given.insert(field.name);
    return true;
  };
  const std::string help = full_help(field);
  CLI::Option* option = nullptr;
  if (field.target.index() == 0) {
    bool& target = *std::get<bool*>(field.target);
    option = app.add_flag_function(
        "--" + field.name + ",!--no-" + field.name,
        [&](std::int64_t count) {
          target = count > 0;
          context.given.insert(field.name);
        },
        help);
    option->default_str(target ? "on" : "off");
  } else {
    std::string names = field.positional ? field.name : "--" + field.name;
    if (field.short_name) names = std::string("-") + field.short_name + "," + names;
    option = app.add_option(names, CLI::callback_t(store), help, !core::to_strings(field).empty());
    option->default_str(default_text(field));
    option->type_name(field.choices.empty() ? type_name(field)
                                            : fmt::format("{}", fmt::join(field.choices, "|")));
    if (field.positional && field.choices.empty()) option->type_name("");
    if (field.is_list()) {
      if (field.positional) {
        option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
      } else {
        option->expected(1, field.greedy ? CLI::detail::expected_max_vector_size : 1)
            ->allow_extra_args(field.greedy)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        // A comma in a text belongs to the text; its flag is repeated instead.
        if (!std::holds_alternative<std::vector<std::string>*>(field.target))
          option->delimiter(',');
      }
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  if (!field.group.empty()) option->group(field.group);
}

std::string parse_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto is = [&](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  return fmt::format("{}; see --help", is(CLI::ExitCodes::ExtrasError) ? unexpected(app)
                                       : is(CLI::ExitCodes::ArgumentMismatch)
                                           ? mismatch(error.what())
                                           : error.what());
}

std::string hint_for_other_name(
    const std::string& flag, const std::vector<std::string>& flags, bool takes_files) {
  std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::ranges::replace(name, '_', '-');
  std::ranges::transform(
      name, name.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  const auto has = [&](const std::string& one) { return core::contains(flags, one); };
  if (has("--" + name)) return fmt::format("; did you mean --{}?", name);
  // A name may be the beginning of an option's and another program's name as well.
  const auto begun = core::named_in_part(name, flags);
  const bool begins = begun.starts_with(fmt::format("--{}-", name));
  for (auto rows = kFlagNames; !rows.empty();) {
    auto advice = taken(rows, '\n'), here = taken(advice, ':'), elsewhere = taken(advice, ':');
    if (!is_among(elsewhere.substr(1), name)) continue;
    if (!advice.empty() && (here.empty() ? takes_files : has(fmt::format("--{}", here))))
      return fmt::format(";{}", advice);
    while (!here.empty() && advice.empty())
      if (const auto own = fmt::format("--{}", taken(here, ' ')); has(own))
        return begins && begun != own ? fmt::format("; did you mean {} or {}?", begun, own)
                                      : fmt::format("; did you mean {}?", own);
  }
  return "";
}

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

core::FieldList with_common(core::FieldList fields, Context& context) {
  if (context.program.draws)
    fields("seed", context.seed, "seed of the random numbers").between(0, kMostSeed);
  fields("jobs", context.jobs, "number of threads; auto: one per processor")
      .auto_or(1, kMostJobs)
      .short_name = 'j';
  fields("json", context.json, "print results as JSON lines");
  return fields;
}

void add_requests(CLI::App& app, Requests& requests) {
  app.set_help_flag(
      "-h,--help", "print the most used options and exit; --help=all: print all options");
  app.get_help_ptr()->group(kSharedGroup);
  app.add_flag("-V,--version", requests.version, "print the version and exit")->group(kSharedGroup);
  app.add_flag(
         "--build-info", requests.build_info, "print compiler, flags and library versions and exit")
      ->group(kSharedGroup);
  app.add_flag("--print-flags", requests.print_flags,
         "print all options as a table (command, names, value, default, help, group) and exit")
      ->group(kSharedGroup);
}

void add_common(CLI::App& app, Context& context, Requests& requests) {
  add_requests(app, requests);
  const std::vector<CLI::Option*> flags = {
      app.add_flag("-q,--quiet", context.quiet, "print no progress and no notes"),
      app.add_flag("-v,--verbose", context.verbose, "print more notes (repeat for more)"),
      app.add_flag("--force", context.force, "write binary data to a terminal"),
      app.add_flag("--print-config", requests.print_config,
          "print all options and their values as a config file (TOML) and exit")};
  for (auto* flag : flags) flag->group(kSharedGroup);
  core::FieldList& values = requests.values;
  const std::string& output = context.program.output;
  values("output", context.output, output.empty() ? "output file or folder [stdout]" : output)
      .short_name = 'o';
  values("config", requests.config,
      "read options from a file (TOML, as --print-config prints it, or JSON)");
  for (const auto& field : values.all()) add_field(app, field, context);
  for (const char* name : {"--jobs", "--json", "--output", "--config", "--seed"})
    if (auto* const option = app.get_option_no_throw(name)) option->group(kSharedGroup);
  app.get_option("--output")->type_name("PATH");
  app.get_option("--config")->type_name("FILE");
}

int print(const std::string& text) {
  core::Output out("-");
  out.write(text);
  out.commit();
  return 0;
}

int answer_request(const CLI::App& app, const Requests& requests, const Context& context) {
  if (requests.version || requests.build_info) return print_version(context, requests.build_info);
  return requests.print_flags ? print(flag_table(app)) : -1;
}

}  // namespace cli
