#include "cli/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "cli/config.h"
#include "cli/descriptors.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/lost_page.h"
#include "cli/offer.h"
#include "cli/progress.h"
#include "cli/protect_inputs.h"
#include "cli/requests.h"
#include "core/destination.h"
#include "core/error.h"
#include "core/io.h"
#include "core/printable.h"

namespace cli {
namespace {

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
    return complain(
        name, core::Code::bug,
        fmt::format("internal error: {}{}", text.substr(0, text.find('\n')), advice(text)));
  }
}

void check_required(const core::FieldList& fields, const Context& context) {
  for (const auto& field : fields.all()) {
    if (field.required && !context.was_given(field.name))
      core::fail(core::Code::usage, "{}{} is missing; see --help", field.positional ? "" : "--",
                 field.name);
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

  // `program` is named in messages; `own` is shown by --help. This object must not move.
  void open(CLI::App& in, const Program& program, const Program& own,
            const core::FieldList& own_fields) {
    app = &in;
    context.program = program;
    context.program.output = own.output;
    fields = with_common(own_fields, context);
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
    std::reverse(arguments.begin(), arguments.end());  // CLI11's order for a vector
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

}  // namespace

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
    core::fail(core::Code::usage,
               "the output is binary and stdout is a terminal; use -o FILE, a pipe, or --force");
}

}  // namespace cli
