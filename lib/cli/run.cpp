#include "cli/run.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>
#include <thread>

#include "cli/config.h"
#include "cli/flags.h"
#include "cli/offer.h"
#include "cli/progress.h"
#include "core/io.h"
#include "core/plain_text.h"
#include "core/temporary_file.h"

namespace cli {
namespace {

std::array<bool, 3> g_filled = {};  // by descriptor

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_catch = 0;

// Ends the process as without a handler, after removing the temporary files.
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

// Without catch_stop_signals() the signal ends the program. With it, a second signal does. Signals
// in quick succession count as one: a batch system sends one to the process and one to its group.
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

// The reader of the output has exited; the program cannot treat this as a stop.
extern "C" void on_broken_pipe(int number) { die_of(number); }

// A file that may not grow (ulimit -f). The write then fails with an ordinary error; the default
// would end the process and leave temporary files.
extern "C" void on_file_limit(int) {}

// Keeps ignoring a signal that the caller of the program ignores.
void handle(int number, void (*handler)(int)) {
  struct sigaction action {
  }, old{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, nullptr, &old);
  if (old.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
}

constexpr std::size_t kMaxConfigBytes = 1 << 20;

// Limits a message to a screen, however long a quoted file or argument is.
std::string as_message(std::string_view text) {
  constexpr std::size_t kBegin = 1500, kEnd = 500;  // bytes kept at either end
  if (text.size() <= kBegin + kEnd) return core::printable(text);
  return core::printable(text.substr(0, kBegin)) + " ... " +
         core::printable(text.substr(text.size() - kEnd));
}

int complain(const std::string& name, core::Code code, std::string_view text) {
  to_stderr(fmt::format("{}: {}\n", name, as_message(text)));
  return static_cast<int>(code);
}

// Returns true if memory or a thread was refused; only the text of LibTorch's errors shows this.
bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* const system = dynamic_cast<const std::system_error*>(&error))
    return system->code() == std::errc::not_enough_memory ||
           system->code() == std::errc::resource_unavailable_try_again;
  const std::string_view text = error.what();
  return text.find("can't allocate memory") != text.npos || text.find("out of memory") != text.npos;
}

// A later call on the device reports a GPU's fault.
std::string_view advice(std::string_view text) {
  return text.find("CUDA error") == text.npos
             ? ""
             : "; GPU errors are reported late: rerun with CUDA_LAUNCH_BLOCKING=1 to see which "
               "call failed";
}

// Runs a body and converts every exception to one line and an exit code.
int guarded(const Context& context, const std::function<int()>& body) {
  const std::string& name = context.program.name;
  try {
    return body();
  } catch (const core::Error& error) {
    return complain(name, error.code(), error.what());
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    if (is_out_of_memory(error))
      return complain(name, core::Code::out_of_memory,
          "out of memory; reduce the batch, the window, the memories or -j");
    return complain(name, core::Code::bug,
        fmt::format("internal error: {}{}", text.substr(0, text.find('\n')), advice(text)));
  }
}

void check_required(const core::FieldList& fields, const Context& context) {
  for (const auto& field : fields.all()) {
    if (field.required && !context.given.contains(field.name))
      core::bad_usage("{}{} is missing; see --help", field.positional ? "" : "--", field.name);
  }
}

// Returns the requested help: that of a verb if one was named.
int print_help(const CLI::App& app, const Offer& offer, const std::string& what) {
  for (const auto& verb : offer.verbs) {
    const auto& asked = *app.get_subcommand(verb.program.name);
    if (asked.parsed())
      return print(help_text(asked, verb.program, what, terminal_width(STDOUT_FILENO)));
  }
  return print(help_text(app, offer.whole.program, what, terminal_width(STDOUT_FILENO)));
}

void finish(Context& context) {
  if (!context.output.empty() && core::destination_of(context.output).descriptor == STDOUT_FILENO)
    context.output = "-";
  if (context.jobs == 0) context.jobs = std::max(1u, std::thread::hardware_concurrency());
}

// A program, or one verb of it, that the user may invoke.
struct Verb {
  CLI::App* app = nullptr;
  Context context;
  Requests requests;
  core::FieldList fields;
  core::FieldValues defaults;

  // `program` is named in messages; `own` is shown by --help. This object must not move.
  void open(
      CLI::App& in, const Program& program, const Program& own, const core::FieldList& own_fields) {
    app = &in;
    context.program = program;
    context.program.output = own.output, context.program.draws = own.draws;
    fields = with_common(own_fields, context);
    defaults = core::values_of(fields);
    for (const auto& field : fields.all()) add_field(in, field, context);
    add_common(in, context, requests);
  }
};

// Returns true for an input that can be read only once, such as a shell's <(command).
bool is_stream(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto type = fs::status(path, error).type();
  return type == fs::file_type::fifo || type == fs::file_type::character ||
         type == fs::file_type::socket;
}

// Sets the fields that the config file names. A front leaves a stream to the program that works.
void read_config_file(Verb& verb, bool front) {
  verb.context.flags = verb.context.given;
  const std::string& file = verb.requests.config;
  if (file.empty() || (front && !verb.requests.print_config && is_stream(file))) return;
  read_config(core::read_text(file, kMaxConfigBytes), file, verb.fields, verb.context.given);
}

// Refuses a word that was meant as the value of a switch before it and is no file.
void expect_no_switch_values(const core::FieldList& fields) {
  const std::set<std::string> words = {"true", "false", "True", "False", "on", "off"};
  for (const auto& field : fields.all()) {
    if (!field.positional || field.name != "FILE") continue;
    for (const auto& value : core::to_strings(field))
      if (words.contains(value) && !core::exists(value))
        core::fail(core::Code::no_input,
            "{}: does not exist; a switch takes no value: give --NAME or --no-NAME", value);
  }
}

// Acts after a successful parse: answers a request, or completes the options and runs the body.
int answer(Verb& verb, const Command& command, bool front) {
  if (const int code = answer_request(*verb.app, verb.requests, verb.context); code >= 0)
    return code;
  read_config_file(verb, front);
  if (verb.requests.print_config) return print(format_config(verb.fields, &verb.context.given));
  check_required(verb.fields, verb.context);
  core::expect_needed(verb.fields, verb.defaults);
  expect_no_switch_values(verb.fields);
  if (front) return command.body(verb.context);
  finish(verb.context);
  protect_inputs(verb.fields, command.program, verb.requests.config, verb.context.output);
  if (!verb.context.quiet)
    core::on_terminal_input([context = verb.context] {
      note(context, "reading from the terminal; Ctrl-D ends the input");
    });
  return command.body(verb.context);
}

int answer_verbs(CLI::App& app, const Requests& requests, const Context& top,
    std::vector<Verb>& verbs, const Offer& offer) {
  if (const int code = answer_request(app, requests, top); code >= 0) return code;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    if (verbs[i].app->parsed()) return answer(verbs[i], offer.verbs[i], offer.front);
    names.push_back(offer.verbs[i].program.name);
  }
  return complain(top.program.name, core::Code::usage,
      fmt::format("give a command: {}; see --help", fmt::join(names, ", ")));
}

// Converts the command line to an exit code; calls `asked` after a successful parse.
int parse(CLI::App& app, int argc, char** argv, const Offer& offer, const Context& context,
    const std::function<int()>& asked) {
  return guarded(context, [&] {
    std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    const std::string what = take_help(arguments);
    std::ranges::reverse(arguments);  // CLI11's order for a vector
    try {
      app.parse(arguments);
    } catch (const CLI::CallForHelp&) {
      return print_help(app, offer, what);
    } catch (const CLI::ParseError& error) {
      return complain(context.program.name, core::Code::usage, parse_message(app, error));
    }
    return asked();
  });
}

// Protects a file, or the files in a folder; does nothing if the path does not exist.
void protect_all_of(const std::string& path) {
  if (path.empty()) return;
  core::protect_input(path);
  std::error_code error;  // the code that reads it reports the error
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    core::protect_input(entry.path());
}

// Refuses an output among the files of a folder that is read, such as a store.
void refuse_to_write_into(const std::string& folder, const std::string& output) {
  const auto destination = core::destination_of(output);
  if (destination.descriptor) return;
  std::error_code error;  // a path that does not exist equals no other
  const auto parent = std::filesystem::absolute(destination.path).parent_path();
  if (std::filesystem::is_directory(folder, error) &&
      std::filesystem::equivalent(folder, parent, error))
    core::bad_usage("{}: is inside {}, which is an input; give another output", output, folder);
}

std::string g_program;

// Returns the file whose mapping contains the address; empty if none is known.
std::string file_at(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const auto path = line.find('/');
    if (begin <= address && address < end && path != line.npos) return line.substr(path);
  }
  return {};
}

// Runs on a memory access outside the C library, so it may call functions that are not signal safe.
extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  const std::string file = info->si_code == BUS_ADRERR
                               ? file_at(reinterpret_cast<std::uintptr_t>(info->si_addr))
                               : std::string();
  if (file.empty()) {
    ::signal(number, SIG_DFL);  // the read is repeated and ends the process
    return;
  }
  core::remove_temporaries();
  to_stderr(
      fmt::format("{}: {}: was cut short while it was read\n", g_program, core::printable(file)));
  ::_exit(static_cast<int>(core::Code::io));
}

// Installs a handler for reads of mapped pages that their file no longer has. The handler removes
// temporary files, prints one line that names the file, and ends the program with Code::io.
// `program` is the program's name in that line.
void catch_lost_pages(const std::string& program) {
  g_program = program;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

// Opens /dev/null for each of stdin, stdout and stderr that is closed, so that no file opened
// later gets its descriptor. The replacement has the wrong access mode, so reading stdin and
// writing stdout or stderr still fail.
void fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    g_filled[static_cast<std::size_t>(descriptor)] = true;
    // The wrong access mode makes reading and writing fail, as on a closed descriptor.
    ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

// Installs the default handlers: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE remove
// temporary files and end the process; SIGXFSZ makes the write fail. A signal that the caller
// ignores stays ignored.
void install_handlers() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    handle(number, on_stop_signal);
  handle(SIGPIPE, on_broken_pipe);
  handle(SIGXFSZ, on_file_limit);
}

}  // namespace

void close_filled_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (g_filled[static_cast<std::size_t>(descriptor)]) ::close(descriptor);
}

bool stdout_was_closed() { return g_filled[STDOUT_FILENO]; }

void catch_stop_signals() { g_catch = 1; }
bool stop_requested() { return g_stop != 0; }

int run(int argc, char** argv, const Offer& offer) {
  if (keep_offer(offer)) return 0;
  const Program& program = offer.whole.program;
  fill_closed_descriptors();
  install_handlers();
  catch_lost_pages(program.name);
  const auto app = make_app(program);
  if (offer.whole.body) {
    Verb whole;
    whole.open(*app, program, program, offer.whole.fields);
    return parse(*app, argc, argv, offer, whole.context,
        [&] { return answer(whole, offer.whole, offer.front); });
  }
  Context top;
  top.program = program;
  Requests requests;
  add_requests(*app, requests);
  std::vector<Verb> verbs(offer.verbs.size());
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    const Command& verb = offer.verbs[i];
    verbs[i].open(*app->add_subcommand(verb.program.name, verb.program.summary), program,
        verb.program, verb.fields);
  }
  return parse(*app, argc, argv, offer, top,
      [&] { return answer_verbs(*app, requests, top, verbs, offer); });
}

int run(int argc, char** argv, const Program& program, const core::FieldList& fields,
    const Body& body) {
  return run(argc, argv, Offer{{program, fields, body}});
}

int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands) {
  return run(argc, argv, Offer{{program, {}, {}}, commands});
}

void refuse_binary_to_terminal(const Context& context) {
  if ((context.output.empty() || context.output == "-") && !context.force &&
      ::isatty(STDOUT_FILENO))
    core::bad_usage(
        "the output is binary and stdout is a terminal; use -o FILE, a pipe, or --force");
}

void protect_inputs(const core::FieldList& fields, const Program& program,
    const std::string& config, const std::string& output) {
  if (!config.empty()) core::protect_input(config);
  for (const auto& name : program.inputs) {
    const auto* const field = core::find_by(fields.all(), name, &core::Field::name);
    if (field == nullptr) core::bug("--{} is not an option", name);
    for (const auto& path : core::to_strings(*field)) protect_all_of(path);
  }
  for (const auto& field : fields.all()) {
    if (!field.positional) continue;
    const auto paths = core::to_strings(field);
    for (const auto& path : paths) {
      core::protect_input(path.empty() ? "-" : path);
      refuse_to_write_into(path, output);
    }
    if (paths.empty()) core::protect_input("-");
  }
}

}  // namespace cli
