#include "cli/requests.h"

#include <CLI/CLI.hpp>

#include "cli/flags.h"
#include "core/build_info.h"
#include "core/io.h"

namespace cli {
namespace {

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

}  // namespace

core::FieldList with_common(core::FieldList fields, Context& context) {
  fields("seed", context.seed, "seed of the random numbers").between(0, kMostSeed);
  fields("jobs", context.jobs, "number of threads; auto: one per processor")
      .between(1, kMostJobs)
      .or_auto()
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
    app.get_option(name)->group(kSharedGroup);
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

std::string flag_table(const CLI::App& app) {
  std::string table;
  add_flags(app, app.get_parent() ? app.get_name() : std::string(), table);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    table += command->get_name() + "\t\t\t\t" + command->get_description() + "\t\n";
    add_flags(*command, command->get_name(), table);
  }
  return table;
}

}  // namespace cli
