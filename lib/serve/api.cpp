#include "serve/api.h"

#include <charconv>

#include "core/plain_text.h"
#include "page/page_writer.h"

namespace serve {
namespace {

using Event = CompletionJob::Event;

constexpr const char* kJson = "application/json";
constexpr std::size_t kLarge = std::size_t{64} << 10;  // bytes of a body
constexpr std::size_t kManyIds = 4096;  // bytes of a body whose ids become a large text
// The page asks this server alone, and no other page contains it.
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\nX-Frame-Options: DENY";
constexpr std::chrono::milliseconds kLook{100};  // polling interval for disconnected clients

std::int64_t now() { return static_cast<std::int64_t>(std::time(nullptr)); }

// Returns the host in lower case, without the port, the root's dot and the brackets of IPv6.
std::string host_name(std::string_view host) {
  const bool v6 = host.starts_with('[');
  if (v6) host.remove_prefix(1);
  host = host.substr(0, host.find(v6 ? ']' : ':'));
  if (!v6 && host.ends_with('.')) host.remove_suffix(1);
  return lower_case(host);
}

// The owner of a name other than localhost can bind it to this machine, for example
// 127.example.org.
bool is_this_machine(std::string_view host) {
  const auto name = host_name(host);
  try {
    return name == "localhost" || is_loopback(name);
  } catch (const core::Error&) { return false; }
}

// Compares in time that does not depend on where the texts differ.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^
                 static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return different == 0;
}

// Returns the credentials of the scheme Bearer, whose name has no case (RFC 9110, section 11.1).
std::string_view bearer(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (lower_case(authorization.substr(0, kScheme.size())) != kScheme) return {};
  authorization.remove_prefix(kScheme.size());
  return authorization.substr(std::min(authorization.find_first_not_of(' '), authorization.size()));
}

// Buffers a growing text and passes on whole characters, with the tokens that begin in them.
struct Streamed {
  std::string held;
  std::vector<CompletionToken> tokens;
  std::int64_t sent = 0;  // characters
  bool begun = false;

  std::string take(const std::string& more, bool last) {
    held += more;
    auto text = last ? std::exchange(held, {}) : core::take_characters(held);
    sent += CharacterCount().before(text, text.size());
    return text;
  }
  std::vector<CompletionToken> take_tokens(bool last) {
    const auto rest = std::ranges::find_if(
        tokens, [&](const auto& token) { return !last && token.offset >= sent; });
    std::vector<CompletionToken> taken(tokens.begin(), rest);
    tokens.erase(tokens.begin(), rest);
    return taken;
  }
};

// Returns the page with the style of annotate's pages.
std::string ask_page() {
  constexpr std::string_view kHere = "@STYLE@";
  std::string page(kAskPage);
  return page.replace(page.find(kHere), kHere.size(), page::kPageStyle);
}

// Returns a part of a path with its escapes, such as %2F, as bytes.
std::string path_text(std::string_view path) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    unsigned byte = 0;
    const auto digits = path.substr(at + 1, 2);
    const auto* const end = digits.data() + digits.size();
    const bool escape = path[at] == '%' && digits.size() == 2 &&
                        std::from_chars(digits.data(), end, byte, 16).ptr == end;
    text += escape ? static_cast<char>(byte) : path[at];
    if (escape) at += 2;
  }
  return text;
}

std::string event_line(const core::OrderedJson& json) {
  return "data: " + core::dump(json) + "\n\n";
}

}  // namespace

std::int64_t steady_seconds() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

Api::Api(ApiOptions options, JobQueue& queue, ServeCounts& counts)
    : options_(std::move(options)), queue_(queue), counts_(counts), started_(now()) {}

std::string Api::refusal(int status, const std::string& text) {
  ++(status < 500 ? counts_.refused : counts_.failed);
  return core::dump(error_json(status, text));
}

bool Api::allows(std::string_view origin) const {
  return std::ranges::any_of(
      options_.origins, [&](const auto& one) { return one == "*" || one == origin; });
}

void Api::check(const HttpRequest& request, HttpAnswer& answer) const {
  if (options_.local_only && !request.header("host").empty() &&
      !is_this_machine(request.header("host")))
    throw HttpError(403, "the Host header names another machine");
  const auto origin = request.header("origin");
  const auto scheme = origin.find("://");
  if (!origin.empty() && allows(origin)) {
    answer.add_header(fmt::format("Access-Control-Allow-Origin: {}\r\nVary: Origin", origin));
  } else if (!origin.empty() &&
             (scheme == origin.npos || origin.substr(scheme + 3) != request.header("host"))) {
    throw HttpError(403, "a request from a page of another origin");
  }
  if (request.method == "OPTIONS") return;  // browsers ask without the key
  if (options_.key.empty() || request.path == "/health" || request.path == "/") return;
  if (!same_secret(bearer(request.header("authorization")), options_.key))
    throw HttpError(401, "the API key is missing or wrong (Authorization: Bearer KEY)",
        "WWW-Authenticate: Bearer");
}

void Api::answer(HttpRequest& request, HttpAnswer& answer) {
  ++counts_.requests;
  check(request, answer);
  const std::shared_ptr<void> ended(nullptr, [this, bytes = request.body.size()](void*) {
    if (bytes > kLarge) counts_.large_ended = steady_seconds();
  });
  struct Path {
    std::string_view method;
    bool needs_tokenizer = false;
  };
  const std::map<std::string_view, Path> paths = {{"/", {"GET"}}, {"/health", {"GET"}},
      {"/v1/models", {"GET"}}, {"/metrics", {"GET"}}, {"/v1/completions", {"POST"}},
      {"/v1/chat/completions", {"POST"}}, {"/tokenizer_info", {"GET", true}},
      {"/tokenize", {"POST", true}}, {"/detokenize", {"POST", true}}};
  const auto& tokens = options_.tokens;
  const bool one_model = request.path.starts_with("/v1/models/");
  const auto found = paths.find(one_model ? "/v1/models" : request.path);
  if (request.path == "*") return options("GET, HEAD, POST", request, answer);
  if (found == paths.end() || (found->second.needs_tokenizer && tokens.tokenizer == nullptr))
    throw HttpError(404, "no such path");
  const auto& method = found->second.method;
  const bool gets = method == "GET";
  const auto allowed = fmt::format("{}{}", method, gets ? ", HEAD" : "");
  if (request.method == "OPTIONS") return options(allowed, request, answer);
  if (method != request.method && !(gets && request.wants_head_only()))
    throw HttpError(
        405, fmt::format("{} takes {}", found->first, method), "Allow: " + allowed + ", OPTIONS");
  if (request.path == "/")
    return answer.send(200, "text/html; charset=utf-8", ask_page(), kPageHeaders);
  if (request.path == "/health") return answer.send(200, kJson, R"({"status":"ok"})");
  if (found->first == "/v1/models") return answer.send(200, kJson, models(request.path));
  if (request.path == "/metrics")
    return answer.send(200, "text/plain; version=0.0.4; charset=utf-8", metrics());
  if (request.path == "/tokenizer_info") return answer.send(200, kJson, tokenizer_info(tokens));
  if (found->second.needs_tokenizer) return answer_tokens(request, answer);
  complete(request, request.path == "/v1/chat/completions", answer);
}

// Answers what a path takes and, for a page that may ask, what it may send (CORS).
void Api::options(
    const std::string& methods, const HttpRequest& request, HttpAnswer& answer) const {
  if (allows(request.header("origin")))
    answer.add_header(fmt::format(
        "Access-Control-Allow-Methods: {}\r\n"
        "Access-Control-Allow-Headers: Authorization, Content-Type\r\nAccess-Control-Max-Age: 600",
        methods));
  answer.send(204, kJson, "", "Allow: " + methods + ", OPTIONS");
}

// The values of a large body, and of the ids of a text, take many times its bytes, so bodies of
// more than `small` bytes are parsed and answered one after the other, while they hold the lock.
std::unique_lock<std::mutex> Api::turn_of(const HttpRequest& request, std::size_t small) {
  return request.body.size() > small ? std::unique_lock(large_) : std::unique_lock<std::mutex>();
}

void Api::answer_tokens(const HttpRequest& request, HttpAnswer& answer) {
  const bool decodes = request.path == "/detokenize";
  auto turn = turn_of(request, decodes ? kManyIds : kLarge);
  const auto made = (decodes ? detokenize : tokenize)(options_.tokens, request.body);
  turn = {};
  const auto bytes = made.size() > kLarge ? made.size() : 0, before = sending_.fetch_add(bytes);
  const std::shared_ptr<void> sent(nullptr, [&](void*) { sending_ -= bytes; });
  if (bytes > 0 && before > 0 && before + bytes > options_.answer_bytes)
    throw HttpError(503, "too many bytes of answers that are not read yet; try again", kRetry);
  answer.send(200, kJson, made);
}

// Parses a request and frees its body.
CompletionRequest Api::parse(HttpRequest& request, bool chat) {
  const auto turn = turn_of(request, kLarge);
  auto parsed = parse_completion(request.body, chat, options_.limits);
  std::string().swap(request.body);
  encode_prompts(parsed, options_.tokens, options_.limits.scored);
  return parsed;
}

void Api::complete(HttpRequest& request, bool chat, HttpAnswer& answer) {
  if (chat && options_.tokens.chat == nullptr)
    throw HttpError(400, "the model has no chat template; /v1/completions continues texts");
  auto job = std::make_shared<CompletionJob>(parse(request, chat));
  if (!queue_.push(job))
    throw HttpError(503,
        queue_.closed() ? "the server is stopping" : "too many waiting requests; try again",
        kRetry);
  CompletionHead head{fmt::format("{}-{}-{}", chat ? "chatcmpl" : "cmpl", started_, ++number_),
      options_.model, now(), chat};
  const std::shared_ptr<void> leave(nullptr, [&](void*) { job->cancel(); });
  job->request.stream ? stream(*job, std::move(head), answer)
                      : whole(*job, std::move(head), answer);
}

// Returns nothing if the client has disconnected. Throws the error that the generating thread
// reports.
std::optional<Event> Api::wait(CompletionJob& job, const HttpAnswer& answer) {
  for (;;) {
    auto event = job.next(kLook);
    if (event && event->kind == Event::Kind::failed && !answer.begun())
      throw HttpError(event->status, event->choice.text);
    if (event) return event;
    if (!answer.gone()) continue;
    ++counts_.left;
    return std::nullopt;
  }
}

void Api::whole(CompletionJob& job, CompletionHead head, HttpAnswer& answer) {
  std::vector<CompletionChoice> choices;
  while (auto event = wait(job, answer)) {
    if (event->kind == Event::Kind::choice) choices.push_back(std::move(event->choice));
    if (event->kind != Event::Kind::done) continue;
    std::ranges::sort(choices, [](const auto& a, const auto& b) { return a.index < b.index; });
    return answer.send(200, kJson, core::dump(completion_json(head, choices, event->usage)));
  }
}

void Api::stream(CompletionJob& job, CompletionHead head, HttpAnswer& answer) {
  std::map<std::int64_t, Streamed> texts;
  const auto send = [&](const CompletionChoice& choice, bool last) {
    auto& text = texts[choice.index];
    CompletionChoice piece{choice.index, text.take(last ? "" : choice.text, last)};
    if (choice.tokens)
      text.tokens.insert(text.tokens.end(), choice.tokens->begin(), choice.tokens->end());
    if (piece.text.empty() && !last) return true;
    if (job.request.logprobs) piece.tokens = text.take_tokens(last);
    if (last) piece.finish = choice.finish, piece.extra = choice.extra;
    const bool first = !std::exchange(text.begun, true);
    return answer.chunk(event_line(completion_chunk(head, piece, first)));
  };
  while (auto event = wait(job, answer)) {
    const auto& choice = event->choice;
    bool there = true;
    const bool failed = event->kind == Event::Kind::failed;
    if (!failed && !answer.begun()) answer.begin("text/event-stream");
    switch (event->kind) {
      case Event::Kind::piece: there = send(choice, false); break;
      case Event::Kind::choice: there = send(choice, true); break;
      case Event::Kind::failed:
        answer.chunk(event_line(error_json(event->status, choice.text)));
        return answer.end();
      case Event::Kind::done:
        if (job.request.usage) answer.chunk(event_line(usage_chunk(head, event->usage)));
        answer.chunk("data: [DONE]\n\n");
        return answer.end();
    }
    if (there) continue;
    ++counts_.left;
    return;
  }
}

core::OrderedJson Api::model() const {
  return {{"id", options_.model}, {"object", "model"}, {"created", started_},
      {"owned_by", "tessera"},
      {"tessera", {{"chat", options_.tokens.chat != nullptr}, {"cite", options_.cite}}}};
}

// Returns the list of models, or the one that the path names.
std::string Api::models(std::string_view path) const {
  constexpr std::string_view kOne = "/v1/models/";
  if (!path.starts_with(kOne))
    return core::dump(
        core::OrderedJson{{"object", "list"}, {"data", core::OrderedJson::array({model()})}});
  if (path_text(path.substr(kOne.size())) != options_.model)
    throw HttpError(404, fmt::format("no such model; there is {}", options_.model));
  return core::dump(model());
}

std::string Api::metrics() const {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, auto value) {
    text += fmt::format("# HELP tessera_{0} {1}\n# TYPE tessera_{0} {2}\ntessera_{0} {3}\n", name,
        help, type, value);
  };
  const auto& c = counts_;
  add("requests_total", "counter", "HTTP requests.", c.requests.load());
  add("refused_total", "counter", "Requests answered with 4xx.", c.refused.load());
  add("failed_total", "counter", "Requests answered with 5xx.", c.failed.load());
  add("left_total", "counter", "Clients that disconnected before their answer.", c.left.load());
  add("texts_total", "counter", "Generated texts.", c.texts.load());
  add("prompt_tokens_total", "counter", "Prompt tokens.", c.prompt_tokens.load());
  add("reused_tokens_total", "counter", "Prompt tokens that were computed before.",
      c.reused_tokens.load());
  add("completion_tokens_total", "counter", "Generated tokens.", c.completion_tokens.load());
  add("busy_seconds_total", "counter", "Time spent in the model.",
      static_cast<double>(c.busy_microseconds.load()) / 1e6);
  add("running_texts", "gauge", "Texts that are being generated.", c.running.load());
  add("queue_length", "gauge", "Waiting requests.", queue_.size());
  return text;
}

}  // namespace serve
