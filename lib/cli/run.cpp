#include "cli/run.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "core/build_info.h"
#include "core/error.h"
#include "core/io.h"

namespace cli {
namespace {

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_catch = 0;

// Without catch_stop_signals(): remove temporary files and die of the signal, as a program without
// a handler would.
extern "C" void on_stop_signal(int number) {
  if (g_catch && !g_stop) {
    g_stop = 1;
    return;
  }
  core::remove_temporaries();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void install_handlers() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction old {};
    ::sigaction(number, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
}

const char* type_name(const core::Field& field) {
  constexpr const char* kNames[] = {"", "N", "X", "TEXT", "TEXT", "N", "X"};
  return kNames[field.target.index()];
}

bool is_list(const core::Field& field) { return field.target.index() >= 4; }

std::string default_text(const core::Field& field) {
  const auto texts = core::to_strings(field);
  return is_list(field) ? fmt::format("{}", fmt::join(texts, ",")) : texts[0];
}

void add_field(CLI::App& app, const core::Field& field, Context& context) {
  const auto store = [&field, &context](const std::vector<std::string>& values) {
    core::assign(field, values);
    context.given.insert(field.name);
    return true;
  };
  CLI::Option* option = nullptr;
  if (field.target.index() == 0) {
    bool& target = *std::get<bool*>(field.target);
    option = app.add_flag_function(
        "--" + field.name + ",!--no-" + field.name,
        [&](std::int64_t count) {
          target = count > 0;
          context.given.insert(field.name);
        },
        field.help);
  } else {
    std::string names = field.positional ? field.name : "--" + field.name;
    if (field.short_name) names = std::string("-") + field.short_name + "," + names;
    option =
        app.add_option(names, CLI::callback_t(store), field.help, !core::to_strings(field).empty());
    option->type_name(field.choices.empty() ? type_name(field)
                                            : fmt::format("{}", fmt::join(field.choices, "|")));
    if (is_list(field)) {
      option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
      if (field.positional) {
        option->configurable(false);
      } else {
        option->expected(1)->delimiter(',')->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      }
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  option->default_str(default_text(field));
  if (field.positional) option->configurable(false);
  if (!field.group.empty()) option->group(field.group);
}

// Requests that end the program before its body.
struct Requests {
  bool version = false, build_info = false, print_config = false;
};

void add_common(CLI::App& app, Context& context, Requests& requests) {
  app.set_help_flag("-h,--help", "print this help and exit");
  app.add_flag("-V,--version", requests.version, "print the version and exit")->configurable(false);
  app.add_flag("--build-info", requests.build_info,
               "print compiler, flags and library versions and exit")
      ->configurable(false);
  app.add_flag("-q,--quiet", context.quiet, "no progress, no notes")->configurable(false);
  app.add_flag("-v,--verbose", context.verbose, "more notes (repeat for more)")
      ->configurable(false);
  app.add_flag("--json", context.json, "figures as JSON lines")->configurable(false);
  app.add_option("--seed", context.seed, "seed of everything random")->capture_default_str();
  app.add_option("-j,--jobs", context.jobs, "threads [number of processors]")
      ->type_name("N")
      ->configurable(false);
  app.add_option("-o,--output", context.output, "where the output goes [stdout]")
      ->type_name("PATH")
      ->configurable(false);
  app.add_flag("--force", context.force, "write binary data to a terminal")->configurable(false);
  app.set_config("--config", "", "read options from a file (key = value, as --print-config writes)")
      ->type_name("FILE");
  app.add_flag("--print-config", requests.print_config,
               "print all options as a config file and exit")
      ->configurable(false);
  app.allow_config_extras(CLI::config_extras_mode::error);
}

int print_version(const Context& context, bool details) {
  namespace build = core::build;
  core::Output out("-");
  out.write(fmt::format("{} {} (git {})\n", context.program.name, build::kVersion, build::kGit));
  if (details) {
    out.write(fmt::format(
        "compiler  {}\nflags     {}\nLibTorch  {}\nFAISS     {}\nCUDA      {}\nothers    {}\n",
        build::kCompiler, build::kFlags, build::kTorch, build::kFaiss, build::kCuda,
        build::kLibraries));
  }
  out.commit();
  return 0;
}

int complain(const std::string& name, core::Code code, std::string_view text) {
  fmt::print(stderr, "{}: {}\n", name, text.substr(0, text.find('\n')));
  return static_cast<int>(code);
}

// Runs a body and turns whatever leaves it into one line and an exit code.
int guarded(const Context& context, const std::function<int()>& body) {
  const std::string& name = context.program.name;
  try {
    return body();
  } catch (const core::Error& error) {
    return complain(name, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return complain(name, core::Code::out_of_memory,
                    "out of memory; use smaller batches, windows or memories, or fewer -j");
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    if (text.find("can't allocate memory") != text.npos || text.find("out of memory") != text.npos)
      return complain(name, core::Code::out_of_memory,
                      "out of memory; use smaller batches, windows or memories, or fewer -j");
    return complain(name, core::Code::bug,
                    fmt::format("internal error: {}", text.substr(0, text.find('\n'))));
  }
}

void check_required(const core::FieldList& fields, const Context& context) {
  for (const auto& field : fields.all()) {
    if (field.required && !context.was_given(field.name))
      core::fail(core::Code::usage, "{}{} is missing; see --help", field.positional ? "" : "--",
                 field.name);
  }
}

// A config file that cannot be read or has a bad or unknown key is told from a wrong flag by its
// exit code.
int parse_failed(const std::string& name, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    core::Output out("-");
    out.write(app.help());
    out.commit();
    return 0;
  }
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code == CLI::ExitCodes::ConfigError)
    return complain(name, core::Code::bad_config,
                    fmt::format("--config: unknown or bad key: {}", error.what()));
  if (code == CLI::ExitCodes::FileError)
    return complain(name, core::Code::no_input, fmt::format("--config: {}", error.what()));
  return complain(name, core::Code::usage, fmt::format("{}; see --help", error.what()));
}

void finish(Context& context) {
  if (context.jobs < 0) core::fail(core::Code::usage, "--jobs: takes a positive number");
  if (context.jobs == 0) context.jobs = std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

int run(int argc, char** argv, const Program& program, const core::FieldList& fields,
        const Body& body) {
  install_handlers();
  CLI::App app(program.summary, program.name);
  Context context;
  context.program = program;
  Requests requests;
  for (const auto& field : fields.all()) add_field(app, field, context);
  add_common(app, context, requests);
  if (!program.example.empty()) app.footer("Example:\n" + program.example);
  return guarded(context, [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return parse_failed(program.name, app, error);
    }
    if (requests.version || requests.build_info) return print_version(context, requests.build_info);
    if (requests.print_config) {
      core::Output out("-");
      out.write(app.config_to_str(true, true));
      out.commit();
      return 0;
    }
    check_required(fields, context);
    finish(context);
    return body(context);
  });
}

int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands) {
  install_handlers();
  CLI::App app(program.summary, program.name);
  Context top;
  top.program = program;
  Requests requests;
  app.set_help_flag("-h,--help", "print this help and exit");
  app.add_flag("-V,--version", requests.version, "print the version and exit");
  app.add_flag("--build-info", requests.build_info,
               "print compiler, flags and library versions and exit");
  if (!program.example.empty()) app.footer("Example:\n" + program.example);
  std::vector<Context> contexts(commands.size());
  std::vector<Requests> command_requests(commands.size());
  std::vector<CLI::App*> apps;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    CLI::App* command = app.add_subcommand(commands[i].program.name, commands[i].program.summary);
    contexts[i].program = program;
    for (const auto& field : commands[i].fields.all()) add_field(*command, field, contexts[i]);
    add_common(*command, contexts[i], command_requests[i]);
    if (!commands[i].program.example.empty())
      command->footer("Example:\n" + commands[i].program.example);
    apps.push_back(command);
  }
  return guarded(top, [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return parse_failed(program.name, app, error);
    }
    if (requests.version || requests.build_info) return print_version(top, requests.build_info);
    for (std::size_t i = 0; i < commands.size(); ++i) {
      if (!apps[i]->parsed()) continue;
      const auto& asked = command_requests[i];
      if (asked.version || asked.build_info) return print_version(top, asked.build_info);
      if (asked.print_config) {
        core::Output out("-");
        out.write(apps[i]->config_to_str(true, true));
        out.commit();
        return 0;
      }
      check_required(commands[i].fields, contexts[i]);
      finish(contexts[i]);
      return commands[i].body(contexts[i]);
    }
    return complain(program.name, core::Code::usage, "give a command; see --help");
  });
}

void catch_stop_signals() { g_catch = 1; }
bool stop_requested() { return g_stop != 0; }

void refuse_binary_to_terminal(const Context& context) {
  if ((context.output.empty() || context.output == "-") && !context.force &&
      ::isatty(STDOUT_FILENO))
    core::fail(core::Code::usage,
               "the output is binary and stdout is a terminal; use -o FILE, a pipe, or --force");
}

}  // namespace cli
