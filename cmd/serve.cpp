// serve: answers completion requests over HTTP, in the form of OpenAI's API, with a model and its
// memories.
//
// -m: a model's folder. Reads nothing from stdin and writes nothing to stdout.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/serve/completer.h"
#include "nn/base/runtime.h"
#include "serve/api.h"

namespace {

// How long after the end of a large request free memory is given back, once a second.
constexpr std::int64_t kTrimSeconds = 5;
constexpr std::size_t kMostKeyBytes = 4096;

struct ServeOptions {
  std::string listen = "127.0.0.1", key_file, name;
  std::vector<std::string> origins;
  std::int64_t port = 8080, queue = 256, connections = 64, max_tokens = 4096, max_texts = 64;
  std::int64_t max_scored = 256'000;
  std::int64_t body = 4 << 20, all_bodies = 64 << 20;
  infer::CompleterOptions completer;
  void fields(core::FieldList& f) {
    f("port", port, "TCP port; 0: any free port").between(0, 65535);
    f("listen", listen,
        "numeric address to listen on; one that other machines can reach requires --api-key-file");
    f("api-key-file", key_file, "file whose first line is the API key of clients");
    f("allow-origin", origins,
        "origin, such as https://example.org, whose pages may send requests (CORS); *: any; "
        "may be repeated");
    f("name", name, "name of the model for clients [the folder's name]");
    completer.fields(f);
    const auto in_limits = f.group("Limits");
    f("queue", queue, "maximum waiting requests").between(1, 1e5);
    f("connections", connections, "maximum connections").between(1, 4096);
    f("max-tokens", max_tokens, "maximum generated tokens of a text").between(1, 1e9);
    f("max-texts", max_texts, "maximum texts of a request").between(1, 65536);
    f("max-scored", max_scored,
        "maximum prompt tokens of a request with log-probabilities, counted for each text")
        .between(1, 1e9);
    f("max-body", body, "maximum bytes of a request").bytes(1024, 1 << 30);
    f("max-bodies", all_bodies, "maximum bytes of all requests that are not answered yet")
        .bytes(1024, 1e12);
  }
};

std::string read_key(const ServeOptions& options) {
  if (options.key_file.empty()) {
    if (!serve::is_loopback(options.listen))
      core::bad_usage(
          "--listen {}: is reachable from other machines; give --api-key-file", options.listen);
    return {};
  }
  const auto text = core::read_text(options.key_file, kMostKeyBytes);
  auto key = text.substr(0, text.find_first_of("\r\n"));
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!std::all_of(key.begin(), key.end(), visible))
    core::bad_data(
        "{}: a header cannot carry the key; write visible ASCII characters without spaces",
        options.key_file);
  if (key.size() < 16)
    core::bad_data("{}: the key is too short; give at least 16 characters", options.key_file);
  return key;
}

serve::ApiOptions api_options(const ServeOptions& options) {
  serve::ApiOptions made;
  const auto folder = std::filesystem::path(options.completer.model).lexically_normal();
  made.model = !options.name.empty()   ? options.name
               : folder.has_filename() ? folder.filename().string()
                                       : folder.parent_path().filename().string();
  made.key = read_key(options);
  made.origins = options.origins;
  made.local_only = serve::is_loopback(options.listen);
  made.limits.max_tokens = options.max_tokens;
  made.limits.texts = options.max_texts;
  made.limits.scored = options.max_scored;
  made.answer_bytes = static_cast<std::size_t>(options.all_bodies);
  made.limits.chat_tokens = std::min(made.limits.chat_tokens, options.max_tokens);
  return made;
}

int serve_completions(ServeOptions options, const cli::Context& context) {
  auto api_for = api_options(options);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  // malloc_trim() gives back the end of one heap, not that of each thread's.
  ::mallopt(M_ARENA_MAX, 1);
  options.completer.memory.choose(context.flags);
  options.completer.generator.seed = static_cast<std::uint64_t>(context.seed);
  options.completer.memory.answers = true;
  infer::Completer completer(options.completer);
  cli::note(context, completer.window_note());
  api_for.cite = options.completer.generator.cite;
  api_for.tokens = completer.tokens();

  serve::JobQueue queue(static_cast<std::size_t>(options.queue));
  serve::ServeCounts counts;
  serve::Api api(api_for, queue, counts);
  serve::HttpLimits limits;
  limits.connections = static_cast<std::size_t>(options.connections);
  limits.body_bytes = static_cast<std::size_t>(options.body);
  limits.all_body_bytes = static_cast<std::size_t>(options.all_bodies);
  cli::catch_stop_signals();
  serve::HttpServer server(
      options.listen, static_cast<std::uint16_t>(options.port), limits,
      [&](auto& request, auto& answer) { api.answer(request, answer); },
      [&](int status, const std::string& text) { return api.refusal(status, text); });
  const bool v6 = options.listen.find(':') != std::string::npos;
  cli::note(context, fmt::format("listening on http://{}{}{}:{}", v6 ? "[" : "", options.listen,
                         v6 ? "]" : "", server.port()));
  completer.run(queue, counts, [&, trimmed = std::int64_t{0}]() mutable {
    if (cli::stop_requested()) queue.close();
    // What large requests have freed lies between smaller blocks of the heap.
    const auto now = serve::steady_seconds();
    if (now - counts.large_ended > kTrimSeconds || now == std::exchange(trimmed, now)) return;
    ::malloc_trim(0);
  });
  server.stop();
  return 0;
}

}  // namespace

int serve_main(int argc, char** argv) {
  ServeOptions options;
  return cli::run(argc, argv,
      {"serve",
          "Serve completions over HTTP, in the format of OpenAI's API, with a model and its memories.",
          "  serve -m model --datastore store\n"
          "  curl -d '{\"prompt\": \"Once upon\", \"max_tokens\": 20}' "
          "localhost:8080/v1/completions",
          {"model", "datastore", "ngrams", "ensemble", "tokenizer", "api-key-file"}},
      options, serve_completions);
}
