#include "cli/flag_table.h"

#include <CLI/CLI.hpp>

#include "cli/flags.h"

namespace cli {
namespace {

std::string names_of(const CLI::Option& option) {
  const auto flags = flags_of(option);
  return flags.empty() ? option.get_name() : flags;
}

void add_flags(const CLI::App& app, const std::string& command, std::string& table) {
  for (const CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    table += command + '\t' + names_of(*option) + '\t' +
             (takes_value ? option->get_type_name() : std::string()) + '\t' +
             option->get_default_str() + '\t' + option->get_description() + '\n';
  }
}

}  // namespace

std::string flag_table(const CLI::App& app) {
  std::string table;
  add_flags(app, app.get_parent() ? app.get_name() : std::string(), table);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    table += command->get_name() + "\t\t\t\t" + command->get_description() + '\n';
    add_flags(*command, command->get_name(), table);
  }
  return table;
}

}  // namespace cli
