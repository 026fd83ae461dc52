#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/other_names.h"
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
  if (default_text(field).empty() && help.find('[') == help.npos) help += " [none]";
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
    if (std::find(flags.begin(), flags.end(), flag) != flags.end())
      return flag + ": must follow the command";
    const std::string hint = hint_for_other_name(flag, flags, takes_files);
    return fmt::format("{}: no such option{}", flag,
                       hint.empty() ? core::did_you_mean(flag, flags) : hint);
  }
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands(nullptr)) commands.push_back(command->get_name());
  if (!commands.empty() && verbs.empty()) {
    const std::string near = core::did_you_mean(word, commands);
    return fmt::format(
        "{}: no such command{}", word,
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

std::string flags_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return CLI::detail::join(names, ",");
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

}  // namespace cli
