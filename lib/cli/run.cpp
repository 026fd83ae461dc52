#include "cli/run.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "cli/config.h"
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

// CLI11's help, with a flag's two names plainly (--x,--no-x).
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = Formatter::make_option_name(option, is_positional);
    const std::string mark = "{false}";
    for (auto at = name.find(mark); at != name.npos; at = name.find(mark))
      name.erase(at, mark.size());
    return name;
  }
};

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
    if (target) option->default_str("true");
  } else {
    std::string names = field.positional ? field.name : "--" + field.name;
    if (field.short_name) names = std::string("-") + field.short_name + "," + names;
    option =
        app.add_option(names, CLI::callback_t(store), field.help, !core::to_strings(field).empty());
    option->default_str(default_text(field));
    option->type_name(field.choices.empty() ? type_name(field)
                                            : fmt::format("{}", fmt::join(field.choices, "|")));
    if (field.positional && field.choices.empty()) option->type_name("");
    if (is_list(field)) {
      if (field.positional) {
        option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
      } else {
        option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        // A comma within a text is the text's own: its flag is repeated.
        if (!std::holds_alternative<std::vector<std::string>*>(field.target))
          option->delimiter(',');
      }
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  if (!field.group.empty()) option->group(field.group);
}

constexpr std::size_t kMaxConfigBytes = 1 << 20;

// Flags for this file alone.
struct Requests {
  bool version = false, build_info = false, print_config = false;
  std::string config;
};

// The fields of a program and those that all programs have and a config file may set.
core::FieldList with_common(core::FieldList fields, Context& context) {
  fields.group("");
  fields("seed", context.seed, "seed of everything random");
  return fields;
}

void add_common(CLI::App& app, Context& context, Requests& requests) {
  app.set_help_flag("-h,--help", "print this help and exit");
  app.add_flag("-V,--version", requests.version, "print the version and exit");
  app.add_flag("--build-info", requests.build_info,
               "print compiler, flags and library versions and exit");
  app.add_flag("-q,--quiet", context.quiet, "no progress, no notes");
  app.add_flag("-v,--verbose", context.verbose, "more notes (repeat for more)");
  app.add_flag("--json", context.json, "figures as JSON lines");
  app.add_option("-j,--jobs", context.jobs, "threads [number of processors]")->type_name("N");
  app.add_option("-o,--output", context.output, "where the output goes [stdout]")
      ->type_name("PATH");
  app.add_flag("--force", context.force, "write binary data to a terminal");
  app.add_option("--config", requests.config,
                 "read options from a file (key = value, as --print-config writes, or JSON)")
      ->type_name("FILE");
  app.add_flag("--print-config", requests.print_config,
               "print all options as a config file and exit");
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

// One line whatever is in the text (the name of a file may hold anything): control characters as
// \xNN.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

int complain(const std::string& name, core::Code code, std::string_view text) {
  fmt::print(stderr, "{}: {}\n", name, one_line(text));
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

int parse_failed(const std::string& name, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    core::Output out("-");
    out.write(app.help());
    out.commit();
    return 0;
  }
  return complain(name, core::Code::usage, fmt::format("{}; see --help", error.what()));
}

constexpr int kMostJobs = 1024;

void finish(Context& context) {
  if (context.jobs < 0 || context.jobs > kMostJobs)
    core::fail(core::Code::usage, "--jobs: takes 1 to {} threads; 0: one a processor", kMostJobs);
  if (context.jobs == 0) context.jobs = std::max(1u, std::thread::hardware_concurrency());
}

// What follows a successful parse: answers a request, or completes the options and runs the body.
int answer(const Requests& requests, const core::FieldList& fields, Context& context,
           const Body& body) {
  if (requests.version || requests.build_info) return print_version(context, requests.build_info);
  if (!requests.config.empty())
    read_config(core::read_text(requests.config, kMaxConfigBytes), requests.config, fields,
                context.given);
  if (requests.print_config) {
    core::Output out("-");
    out.write(format_config(fields));
    out.commit();
    return 0;
  }
  check_required(fields, context);
  finish(context);
  return body(context);
}

}  // namespace

int run(int argc, char** argv, const Program& program, const core::FieldList& own_fields,
        const Body& body) {
  install_handlers();
  CLI::App app(program.summary, program.name);
  app.formatter(std::make_shared<HelpFormatter>());
  Context context;
  context.program = program;
  Requests requests;
  const core::FieldList fields = with_common(own_fields, context);
  for (const auto& field : fields.all()) add_field(app, field, context);
  add_common(app, context, requests);
  if (!program.example.empty()) app.footer("Example:\n" + program.example);
  return guarded(context, [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return parse_failed(program.name, app, error);
    }
    return answer(requests, fields, context, body);
  });
}

int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands) {
  install_handlers();
  CLI::App app(program.summary, program.name);
  app.formatter(std::make_shared<HelpFormatter>());
  Context top;
  top.program = program;
  Requests requests;
  app.set_help_flag("-h,--help", "print this help and exit");
  app.add_flag("-V,--version", requests.version, "print the version and exit");
  app.add_flag("--build-info", requests.build_info,
               "print compiler, flags and library versions and exit");
  if (!program.example.empty()) app.footer("Example:\n" + program.example);
  struct Verb {
    CLI::App* app = nullptr;
    Context context;
    Requests requests;
    core::FieldList fields;
  };
  std::vector<Verb> verbs(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Verb& verb = verbs[i];
    verb.app = app.add_subcommand(commands[i].program.name, commands[i].program.summary);
    verb.context.program = program;
    verb.fields = with_common(commands[i].fields, verb.context);
    for (const auto& field : verb.fields.all()) add_field(*verb.app, field, verb.context);
    add_common(*verb.app, verb.context, verb.requests);
    if (!commands[i].program.example.empty())
      verb.app->footer("Example:\n" + commands[i].program.example);
  }
  return guarded(top, [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return parse_failed(program.name, app, error);
    }
    if (requests.version || requests.build_info) return print_version(top, requests.build_info);
    for (std::size_t i = 0; i < verbs.size(); ++i)
      if (verbs[i].app->parsed())
        return answer(verbs[i].requests, verbs[i].fields, verbs[i].context, commands[i].body);
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
