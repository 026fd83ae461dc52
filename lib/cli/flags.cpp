#include "cli/flags.h"

#include <CLI/CLI.hpp>

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
    return fmt::format(
        "{}: no such option{}", flag, hint.empty() ? core::did_you_mean(flag, flags) : hint);
  }
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands(nullptr)) commands.push_back(command->get_name());
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

/// What to say of names that no option of a program with the option `of` has.
struct Advice {
  std::string_view of, elsewhere, text;
};

constexpr Advice kAdvice[] = {
    {"checkpoint-every", "resume resume-from resume-from-checkpoint continue auto-resume",
        "rerun the command of a run to resume it"},
    {"checkpoint-every", "overwrite overwrite-output-dir", "-o takes a new folder"},
    {"top-p", "greedy do-sample no-sample",
        "--temperature 0 takes the most probable token, any other draws one"},
    {"top-p", "min-p typical typical-p top-a mirostat", "--top-k and --top-p limit the tokens"},
    {"top-p",
        "repeat-penalty repetition-penalty no-repeat-ngram-size frequency-penalty presence-penalty",
        "there is no penalty of repetitions"},
};

constexpr std::string_view kFiles =
    "data dataset train-data train-file data-path data-dir input input-file infile file files "
    "text-file prompt-file eval-dataset test-file";

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

std::string hint_for_other_name(
    const std::string& flag, const std::vector<std::string>& flags, bool takes_files) {
  std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  std::transform(name.begin(), name.end(), name.begin(),
      [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  const auto has = [&](const std::string& one) {
    return std::find(flags.begin(), flags.end(), one) != flags.end();
  };
  if (has("--" + name)) return fmt::format("; did you mean --{}?", name);
  // A name may be the beginning of an option's and another program's name as well.
  const auto begun = core::named_in_part(name, flags);
  const bool begins = begun.starts_with(fmt::format("--{}-", name));
  for (auto rows = kFlagNames; !rows.empty();) {
    auto elsewhere = taken(rows, '\n'), here = taken(elsewhere, ':');
    if (!is_among(elsewhere.substr(1), name)) continue;
    while (!here.empty())
      if (const auto own = fmt::format("--{}", taken(here, ' ')); has(own))
        return begins && begun != own ? fmt::format("; did you mean {} or {}?", begun, own)
                                      : fmt::format("; did you mean {}?", own);
  }
  for (const auto& [of, elsewhere, text] : kAdvice)
    if (is_among(elsewhere, name) && has(fmt::format("--{}", of))) return fmt::format("; {}", text);
  return takes_files && is_among(kFiles, name) ? "; files are given without an option" : "";
}

}  // namespace cli
