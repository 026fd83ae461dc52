#include "cli/run.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>

#include "cli/config.h"
#include "cli/flag_table.h"
#include "cli/lost_page.h"
#include "cli/progress.h"
#include "core/build_info.h"
#include "core/destination.h"
#include "core/error.h"
#include "core/io.h"
#include "core/printable.h"

namespace cli {
namespace {

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_catch = 0;
bool g_stdout_was_closed = false;

// As a program without a handler would, but for its temporary files.
void die_of(int number) {
  core::remove_temporaries();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

std::int64_t monotonic_ms() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

// Without catch_stop_signals() the program dies of it. With it, it dies of a second one; but those
// that come at once are the same stop: a batch system sends one to the process and one to its
// group.
extern "C" void on_stop_signal(int number) {
  constexpr std::int64_t kSameStopMs = 1000;
  static std::atomic<std::int64_t> stopped_at{0};
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
  if (g_catch && !g_stop) {
    stopped_at = monotonic_ms();
    g_stop = 1;
    return;
  }
  if (g_stop && monotonic_ms() - stopped_at < kSameStopMs) return;
  die_of(number);
}

// What reads the output is gone: no stop that a program could catch.
extern "C" void on_broken_pipe(int number) { die_of(number); }

// A file that may not grow (ulimit -f): the write fails, which is told as any other; the default
// would be to die and to leave what is temporary.
extern "C" void on_file_limit(int) {}

// A file opened later must not become stdin, stdout or stderr: where one of them is closed stands
// /dev/null, the first two opened so that reading and writing fail as they would have.
void fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    g_stdout_was_closed |= descriptor == STDOUT_FILENO;
    ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

// A signal that whoever started the program ignores stays ignored.
void handle(int number, void (*handler)(int)) {
  struct sigaction action {
  }, old{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, nullptr, &old);
  if (old.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
}

void install_handlers() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    handle(number, on_stop_signal);
  handle(SIGPIPE, on_broken_pipe);
  handle(SIGXFSZ, on_file_limit);
}

const char* type_name(const core::Field& field) {
  if (field.size) return "BYTES";
  constexpr const char* kNames[] = {"", "N", "X", "TEXT", "TEXT", "N", "X"};
  return kNames[field.target.index()];
}

std::string default_text(const core::Field& field) {
  const auto texts = core::to_strings(field);
  return field.is_list() ? fmt::format("{}", fmt::join(texts, ",")) : texts[0];
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

// What it may be, and what stands for it where it is not given and has no default to show.
std::string full_help(const core::Field& field) {
  const std::string range = field.range();
  std::string help = range.empty() ? field.help : fmt::format("{} ({})", field.help, range);
  if (field.positional || std::holds_alternative<bool*>(field.target)) return help;
  if (field.required) return help + " [required]";
  if (default_text(field).empty() && help.find('[') == help.npos) help += " [none]";
  return help;
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
  bool version = false, build_info = false, print_flags = false, print_config = false;
  std::string config;
  core::FieldList values;  ///< the flags with a value that no config file sets
};

constexpr double kMostSeed = 4e18;  // within 63 bits

// The fields of a program and those that all programs have and a config file may set.
core::FieldList with_common(core::FieldList fields, Context& context) {
  fields.group("");
  fields("seed", context.seed, "seed of everything random").between(0, kMostSeed);
  return fields;
}

constexpr int kMostJobs = 1024;

void add_requests(CLI::App& app, Requests& requests) {
  app.set_help_flag("-h,--help", "print this help and exit");
  app.add_flag("-V,--version", requests.version, "print the version and exit");
  app.add_flag("--build-info", requests.build_info,
               "print compiler, flags and library versions and exit");
  app.add_flag("--print-flags", requests.print_flags,
               "print all flags as a table (command, names, value, default, help) and exit");
}

void add_common(CLI::App& app, Context& context, Requests& requests) {
  add_requests(app, requests);
  app.add_flag("-q,--quiet", context.quiet, "no progress, no notes");
  app.add_flag("-v,--verbose", context.verbose, "more notes (repeat for more)");
  app.add_flag("--json", context.json, "figures as JSON lines");
  app.add_flag("--force", context.force, "write binary data to a terminal");
  app.add_flag("--print-config", requests.print_config,
               "print all options as a config file and exit");
  core::FieldList& values = requests.values;
  values("jobs", context.jobs, "threads; 0: one a processor").between(0, kMostJobs).short_name =
      'j';
  values("output", context.output, "where the output goes [stdout]").short_name = 'o';
  values("config", requests.config,
         "read options from a file (key = value, as --print-config writes, or JSON)");
  for (const auto& field : values.all()) add_field(app, field, context);
  app.get_option("--output")->type_name("PATH");
  app.get_option("--config")->type_name("FILE");
}

int print(const std::string& text) {
  core::Output out("-");
  out.write(text);
  out.commit();
  return 0;
}

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

// Not longer than a screen, whatever a file or an argument that it quotes holds.
std::string as_message(std::string_view text) {
  constexpr std::size_t kBegin = 1500, kEnd = 500;  // bytes that stay
  if (text.size() <= kBegin + kEnd) return core::printable(text);
  return core::printable(text.substr(0, kBegin)) + " ... " +
         core::printable(text.substr(text.size() - kEnd));
}

int complain(const std::string& name, core::Code code, std::string_view text) {
  to_stderr(fmt::format("{}: {}\n", name, as_message(text)));
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

// What was given that nothing takes: an unknown flag, command or one argument too many.
std::string unexpected(const CLI::App& app) {
  const std::string word = app.remaining(true).front();
  const auto verbs = app.get_subcommands();
  const CLI::App& asked = verbs.empty() ? app : *verbs.front();
  if (word.starts_with('-')) {
    std::vector<std::string> flags;
    for (const auto* option : asked.get_options())
      for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
    const std::string flag = word.substr(0, word.find('='));
    if (std::find(flags.begin(), flags.end(), flag) != flags.end())
      return flag + ": goes behind the command";
    return fmt::format("{}: no such option{}", flag, core::did_you_mean(flag, flags));
  }
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands(nullptr)) commands.push_back(command->get_name());
  if (!commands.empty() && verbs.empty()) {
    const std::string near = core::did_you_mean(word, commands);
    return fmt::format(
        "{}: no such command{}", word,
        near.empty() ? fmt::format("; there are {}", fmt::join(commands, ", ")) : near);
  }
  return word + ": an argument too many";
}

int parse_failed(const std::string& name, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return print(app.help());
  const bool extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  return complain(name, core::Code::usage,
                  fmt::format("{}; see --help", extra ? unexpected(app) : error.what()));
}

// A file, or the files in a folder; nothing where nothing is.
void protect_all_of(const std::string& path) {
  if (path.empty()) return;
  core::protect_input(path);
  std::error_code error;  // whoever reads it will say so
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    core::protect_input(entry.path());
}

// A folder that is read (a store) gets no output among its files.
void refuse_to_write_into(const std::string& folder, const std::string& output) {
  const auto destination = core::destination_of(output);
  if (destination.descriptor) return;
  std::error_code error;  // where one of them is not there they are not the same
  const auto parent = std::filesystem::absolute(destination.path).parent_path();
  if (std::filesystem::is_directory(folder, error) &&
      std::filesystem::equivalent(folder, parent, error))
    core::fail(core::Code::usage,
               "{}: stands in {}, which is an input; give the output another place", output,
               folder);
}

// The arguments without a flag are files to read, and so are the values of the options that the
// program names; an output must not take the place of one.
void protect_inputs(const core::FieldList& fields, const Program& program, const Requests& requests,
                    const Context& context) {
  if (!requests.config.empty()) core::protect_input(requests.config);
  for (const auto& name : program.inputs) {
    const auto& all = fields.all();
    const auto field =
        std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
    if (field == all.end()) core::fail(core::Code::bug, "--{} is no option", name);
    for (const auto& path : core::to_strings(*field)) protect_all_of(path);
  }
  for (const auto& field : fields.all()) {
    if (!field.positional) continue;
    const auto paths = core::to_strings(field);
    for (const auto& path : paths) {
      core::protect_input(path.empty() ? "-" : path);
      refuse_to_write_into(path, context.output);
    }
    if (paths.empty()) core::protect_input("-");
  }
}

void finish(Context& context) {
  if (!context.output.empty() && core::destination_of(context.output).descriptor == STDOUT_FILENO)
    context.output = "-";
  if (context.jobs == 0) context.jobs = std::max(1u, std::thread::hardware_concurrency());
}

// Answers what asks for nothing but a text; -1 where nothing of it was asked for.
int answer_request(const CLI::App& app, const Requests& requests, const Context& context) {
  if (requests.version || requests.build_info) return print_version(context, requests.build_info);
  return requests.print_flags ? print(flag_table(app)) : -1;
}

// What follows a successful parse: answers a request, or completes the options and runs the body.
int answer(const CLI::App& app, const Requests& requests, const core::FieldList& fields,
           Context& context, const Program& program, const Body& body) {
  if (const int code = answer_request(app, requests, context); code >= 0) return code;
  if (!requests.config.empty())
    read_config(core::read_text(requests.config, kMaxConfigBytes), requests.config, fields,
                context.given);
  if (requests.print_config) return print(format_config(fields));
  check_required(fields, context);
  finish(context);
  protect_inputs(fields, program, requests, context);
  if (!context.quiet)
    core::on_terminal_input(
        [context] { note(context, "reading the terminal; Ctrl-D ends the input"); });
  return body(context);
}

void add_example(CLI::App& app, const Program& program) {
  if (!program.example.empty()) app.footer("Example:\n" + program.example);
}

// A program, or one verb of it, that may be asked for.
struct Verb {
  CLI::App* app = nullptr;
  Context context;
  Requests requests;
  core::FieldList fields;

  // `program`: whom messages name; `own`: what --help says. This must stay where it is.
  void open(CLI::App& in, const Program& program, const Program& own,
            const core::FieldList& own_fields) {
    app = &in;
    context.program = program;
    fields = with_common(own_fields, context);
    for (const auto& field : fields.all()) add_field(in, field, context);
    add_common(in, context, requests);
    add_example(in, own);
  }
};

// From the command line to the exit code: `asked` is called behind a successful parse.
int parse(CLI::App& app, int argc, char** argv, const Context& context,
          const std::function<int()>& asked) {
  return guarded(context, [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return parse_failed(context.program.name, app, error);
    }
    return asked();
  });
}

std::unique_ptr<CLI::App> start(const Program& program) {
  fill_closed_descriptors();
  install_handlers();
  catch_lost_pages(program.name);
  auto app = std::make_unique<CLI::App>(program.summary, program.name);
  app->formatter(std::make_shared<HelpFormatter>());
  return app;
}

}  // namespace

int run(int argc, char** argv, const Program& program, const core::FieldList& own_fields,
        const Body& body) {
  const auto app = start(program);
  Verb whole;
  whole.open(*app, program, program, own_fields);
  return parse(*app, argc, argv, whole.context, [&] {
    return answer(*app, whole.requests, whole.fields, whole.context, program, body);
  });
}

int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands) {
  const auto app = start(program);
  Context top;
  top.program = program;
  Requests requests;
  add_requests(*app, requests);
  add_example(*app, program);
  std::vector<Verb> verbs(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Program& verb = commands[i].program;
    verbs[i].open(*app->add_subcommand(verb.name, verb.summary), program, verb, commands[i].fields);
  }
  return parse(*app, argc, argv, top, [&] {
    if (const int code = answer_request(*app, requests, top); code >= 0) return code;
    for (std::size_t i = 0; i < verbs.size(); ++i)
      if (verbs[i].app->parsed())
        return answer(*verbs[i].app, verbs[i].requests, verbs[i].fields, verbs[i].context,
                      commands[i].program, commands[i].body);
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command.program.name);
    return complain(program.name, core::Code::usage,
                    fmt::format("give a command: {}; see --help", fmt::join(names, ", ")));
  });
}

void catch_stop_signals() { g_catch = 1; }
bool stop_requested() { return g_stop != 0; }
bool stdout_was_closed() { return g_stdout_was_closed; }

void refuse_binary_to_terminal(const Context& context) {
  if ((context.output.empty() || context.output == "-") && !context.force &&
      ::isatty(STDOUT_FILENO))
    core::fail(core::Code::usage,
               "the output is binary and stdout is a terminal; use -o FILE, a pipe, or --force");
}

}  // namespace cli
