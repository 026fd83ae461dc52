#include "serve/completion.h"

#include "core/plain_text.h"
#include "core/units.h"
#include "serve/members.h"

namespace serve {
namespace {

using core::Json;
using core::OrderedJson;

std::vector<std::int64_t> ids_of(const Json& list) {
  if (list.empty()) refuse("prompt: a list of token ids is empty");
  return core::mapped(list, [](const Json& id) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
      refuse("prompt: {} is not a token id", core::dump(id).substr(0, 40));
    return id.get<std::int64_t>();
  });
}

std::vector<CompletionPrompt> prompts_of(const Json& prompt, std::int64_t most, std::int64_t n) {
  const auto prompt_of = [](const Json& one) {
    if (one.is_string()) return CompletionPrompt{one.get<std::string>()};
    if (!one.is_array()) refuse("prompt: takes a text, a list of ids, or a list of these");
    return CompletionPrompt{{}, ids_of(one)};
  };
  if (!prompt.is_array() || (!prompt.empty() && prompt[0].is_number())) return {prompt_of(prompt)};
  if (prompt.empty()) refuse("prompt: takes a text, a list of ids, or a list of these");
  if (static_cast<std::int64_t>(prompt.size()) > most)
    refuse("prompt: takes at most {} texts, {} of each prompt", most * n, n);
  return core::mapped(prompt, prompt_of);
}

// An empty text stops nothing.
void take_stop(const Json& stop, const CompletionLimits& limits, CompletionRequest& request) {
  const auto add = [&](const Json& text) {
    if (!text.is_string()) refuse("stop: takes a text, or a list of them");
    if (auto one = text.get<std::string>(); !one.empty()) request.stop.push_back(std::move(one));
  };
  if (!stop.is_array()) return add(stop);
  if (static_cast<std::int64_t>(stop.size()) > limits.stops)
    refuse("stop: takes at most {} texts", limits.stops);
  for (const Json& text : stop) add(text);
}

void take_logprobs(
    const Members& members, const CompletionLimits& limits, CompletionRequest& request) {
  if (!request.chat) {
    std::int64_t likely = -1;
    const Json* const value = members.find("logprobs");
    if (value != nullptr && value->is_boolean()) likely = value->get<bool>() ? 0 : -1;
    else members.take("logprobs", std::int64_t{0}, limits.likely, likely);
    if (likely >= 0) request.logprobs = likely;
    return;
  }
  bool asked = false;
  std::int64_t likely = 0;
  members.take("logprobs", asked);
  members.take("top_logprobs", std::int64_t{0}, limits.likely, likely);
  if (asked) request.logprobs = likely;
  else if (likely > 0) refuse("top_logprobs: requires logprobs, true");
}

// Returns the most tokens of a text: all members mean the same, -1 means as many as the server
// allows, and more than these end with "length" like any other number.
std::int64_t most_tokens(const Members& members, bool chat, const CompletionLimits& limits) {
  std::int64_t most = chat ? limits.chat_tokens : 16;
  for (const char* name : {"max_tokens", "n_predict", "max_completion_tokens"}) {
    if (name == std::string_view("max_completion_tokens") && !chat) continue;
    members.take(name, std::int64_t{-1}, INT64_MAX, most);
    if (most == 0 && chat) refuse("{}: takes a whole number from 1 on, or -1", name);
  }
  return most < 0 ? limits.max_tokens : std::min(most, limits.max_tokens);
}

// A seed is any number of 64 bits; -1 means none.
std::optional<std::uint64_t> seed_of(const Members& members) {
  const Json* const value = members.find("seed");
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  const auto number = whole_number(*value);
  if (!number) refuse("seed: takes a whole number of 64 bits");
  return *number == -1 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*number));
}

// Returns the id that a member's name or value is.
std::int64_t id_of(const char* name, const Json& value) {
  const auto id = value.is_string()
                      ? core::read_number<std::int64_t>(value.get_ref<const std::string&>())
                      : whole_number(value);
  if (!id || *id < 0 || *id > INT32_MAX)
    refuse("{}: {} is not a token id", name, core::dump(value).substr(0, 40));
  return *id;
}

// {"id": bias}, or llama.cpp's [[id, bias], ...], in which false forbids a token.
void take_biases(const Json& biases, CompletionRequest& request) {
  constexpr double kMost = 1e9;
  const auto add = [&](const Json& id, const Json& bias) {
    const double number = bias == false ? -kMost : bias.is_number() ? bias.get<double>() : NAN;
    if (!(std::abs(number) <= kMost)) refuse("logit_bias: takes a number for each token id");
    request.biases.emplace_back(id_of("logit_bias", id), number);
  };
  if (biases.is_object())
    for (const auto& [id, bias] : biases.items()) add(id, bias);
  else if (biases.is_array() && std::ranges::all_of(biases, [](const Json& one) {
             return one.is_array() && one.size() == 2;
           }))
    for (const Json& one : biases) add(one[0], one[1]);
  else refuse("logit_bias: takes an object of token ids and numbers");
}

void take_logit_rules(const Members& members, CompletionRequest& request) {
  members.take("presence_penalty", -100., 100., request.presence_penalty);
  members.take("frequency_penalty", -100., 100., request.frequency_penalty);
  members.take("repetition_penalty", 0., 100., request.repetition_penalty);
  if (request.repetition_penalty == 0) refuse("repetition_penalty: takes a number above 0");
  // llama.cpp's penalties see the last N tokens.
  const bool penalises = request.presence_penalty != 0 || request.frequency_penalty != 0 ||
                         request.repetition_penalty != 1;
  const Json* const last = members.find("repeat_last_n");
  if (last != nullptr && penalises && *last != -1)
    refuse("repeat_last_n: penalties see the whole text; give -1 or leave it out");
  if (const Json* const biases = members.find("logit_bias"); biases != nullptr)
    take_biases(*biases, request);
  if (const Json* const ids = members.find("allowed_token_ids"); ids != nullptr) {
    if (!ids->is_array()) refuse("allowed_token_ids: takes a list of token ids");
    for (const Json& id : *ids) request.allowed.push_back(id_of("allowed_token_ids", id));
  }
}

// Makes a text that JSON can hold, because a token may be part of a character.
std::string token_text(const std::string& text) {
  if (core::utf8_length(text) == text.size()) return text;
  std::string bytes = "bytes:";
  for (const char c : text) bytes += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return bytes;
}

OrderedJson number_or_null(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? OrderedJson(*number) : OrderedJson();
}

OrderedJson completion_tokens(const std::vector<CompletionToken>& tokens) {
  OrderedJson texts = OrderedJson::array(), log_probs = texts, likely = texts, offsets = texts;
  for (const auto& token : tokens) {
    texts.push_back(token_text(token.text));
    log_probs.push_back(number_or_null(token.log_prob));
    OrderedJson words = OrderedJson::object();
    // Of tokens with one text, the most probable.
    for (const auto& [text, log_prob] : token.likely)
      if (const auto key = token_text(text); !words.contains(key)) words[key] = log_prob;
    likely.push_back(token.log_prob ? std::move(words) : OrderedJson());
    offsets.push_back(token.offset);
  }
  return {{"tokens", std::move(texts)}, {"token_logprobs", std::move(log_probs)},
      {"top_logprobs", std::move(likely)}, {"text_offset", std::move(offsets)}};
}

OrderedJson chat_token(const std::string& text, const std::optional<double>& log_prob) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token_text(text)}, {"logprob", number_or_null(log_prob)}, {"bytes", bytes}};
}

OrderedJson chat_tokens(const std::vector<CompletionToken>& tokens) {
  OrderedJson content = OrderedJson::array();
  for (const auto& token : tokens) {
    OrderedJson one = chat_token(token.text, token.log_prob);
    one["top_logprobs"] = OrderedJson::array();
    for (const auto& [text, log_prob] : token.likely)
      one["top_logprobs"].push_back(chat_token(text, log_prob));
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}};
}

OrderedJson head_json(const CompletionHead& head, bool chunk) {
  const char* const object = !head.chat ? "text_completion"
                             : chunk    ? "chat.completion.chunk"
                                        : "chat.completion";
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

OrderedJson tokens_json(const CompletionHead& head, const CompletionChoice& choice) {
  if (!choice.tokens) return nullptr;
  return head.chat ? chat_tokens(*choice.tokens) : completion_tokens(*choice.tokens);
}

OrderedJson usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt}, {"completion_tokens", usage.completion},
      {"total_tokens", usage.prompt + usage.completion},
      {"prompt_tokens_details", {{"cached_tokens", usage.reused}}}};
}

}  // namespace

std::int64_t CharacterCount::before(std::string_view text, std::size_t byte) {
  while (at_ < text.size()) {
    const auto next = at_ + core::replaced_length(text.substr(at_));
    if (next > byte) break;
    at_ = next, ++characters_;
  }
  return characters_;
}

CompletionRequest parse_completion(
    const std::string& body, bool chat, const CompletionLimits& limits) {
  const Json json = json_object(body);
  const Members members(json);
  CompletionRequest request;
  request.chat = chat;
  if (const Json* const model = members.find("model"); model != nullptr && model->is_string())
    request.model = model->get<std::string>();
  request.max_tokens = most_tokens(members, chat, limits);
  members.take("n", std::int64_t{1}, limits.texts, request.n);
  members.take("temperature", 0., 1e6, request.temperature);
  members.take("top_p", 0., 1., request.top_p);
  // The smallest set of tokens that has any probability is the most probable token.
  if (request.top_p == 0) request.top_p = std::numeric_limits<double>::min();
  members.take("top_k", std::int64_t{-1}, std::int64_t{1} << 31, request.top_k);
  request.top_k = std::max<std::int64_t>(0, request.top_k);
  request.seed = seed_of(members);
  bool begins = !chat;
  members.take("add_special_tokens", begins);
  request.begins = begins;
  members.take("parse_special", request.parses);
  take_logit_rules(members, request);
  members.take("stream", request.stream);
  if (const Json* const options = members.find("stream_options"); options != nullptr) {
    if (!options->is_object()) refuse("stream_options: takes an object");
    Members(*options).take("include_usage", request.usage);
    for (const auto& [name, value] : options->items())
      if (name != "include_usage" && !value.is_null() &&
          (value != false || (name != "include_obfuscation" && name != "continuous_usage_stats")))
        refuse("stream_options: {} is not supported; leave it out", name.substr(0, 80));
  }
  if (const Json* const stop = members.find("stop"); stop != nullptr)
    take_stop(*stop, limits, request);
  take_logprobs(members, limits, request);
  if (const Json* const memory = members.find("memory"); memory != nullptr) {
    if (!memory->is_object()) refuse("memory: takes an object of options");
    if (!memory->empty()) request.memory = core::dump(*memory);
  }
  if (const Json* const best = members.find("best_of"); best != nullptr && *best != request.n)
    refuse("best_of: is not supported; leave it out");
  bool echo = false;
  members.take("echo", echo);
  if (chat && echo) refuse("echo: is not supported in a chat; leave it out");
  request.echo = echo;
  if (chat) {
    const Json* const messages = members.find("messages");
    if (messages == nullptr || !messages->is_array()) refuse("messages: takes a list of messages");
    members.refuse_others();
    request.messages = core::dump(*messages);
    return request;
  }
  const Json* const prompt = members.find("prompt");
  if (prompt == nullptr) refuse("prompt: is missing");
  members.refuse_others();
  request.prompts = prompts_of(*prompt, limits.texts / request.n, request.n);
  return request;
}

OrderedJson completion_json(const CompletionHead& head,
    const std::vector<CompletionChoice>& choices, const CompletionUsage& usage) {
  OrderedJson json = head_json(head, false);
  json["choices"] = OrderedJson::array();
  for (const auto& choice : choices) {
    OrderedJson one{{"index", choice.index}};
    if (head.chat) one["message"] = {{"role", "assistant"}, {"content", choice.text}};
    else one["text"] = choice.text;
    one["logprobs"] = tokens_json(head, choice);
    one["finish_reason"] = choice.finish;
    if (!choice.extra.is_null()) one["tessera"] = choice.extra;
    json["choices"].push_back(std::move(one));
  }
  json["usage"] = usage_json(usage);
  return json;
}

OrderedJson completion_chunk(
    const CompletionHead& head, const CompletionChoice& piece, bool first) {
  OrderedJson json = head_json(head, true);
  OrderedJson one{{"index", piece.index}};
  if (head.chat) {
    one["delta"] = OrderedJson::object();
    if (first) one["delta"]["role"] = "assistant";
    if (first || !piece.text.empty()) one["delta"]["content"] = piece.text;
  } else {
    one["text"] = piece.text;
  }
  one["logprobs"] = tokens_json(head, piece);
  one["finish_reason"] = piece.finish.empty() ? OrderedJson() : OrderedJson(piece.finish);
  if (!piece.extra.is_null()) one["tessera"] = piece.extra;
  json["choices"] = OrderedJson::array({std::move(one)});
  return json;
}

OrderedJson usage_chunk(const CompletionHead& head, const CompletionUsage& usage) {
  OrderedJson json = head_json(head, true);
  json["choices"] = OrderedJson::array();
  json["usage"] = usage_json(usage);
  return json;
}

OrderedJson error_json(int status, const std::string& text) {
  const char* const type = status < 500 ? "invalid_request_error" : "server_error";
  return {{"error", {{"message", text}, {"type", type}, {"code", status}}}};
}

}  // namespace serve
