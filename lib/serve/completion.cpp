#include "serve/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/plain_text.h"
#include "serve/http_request.h"

namespace serve {
namespace {

using core::Json;
using core::OrderedJson;

constexpr int kBadRequest = 400;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw HttpError(kBadRequest, fmt::format(format, std::forward<Args>(args)...));
}

// Returns the whole number that a value is, exactly; a float may be one up to 2^53.
std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= 0x1p53) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// Reads the members of a request; null means absent.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  void take(const char* name, std::int64_t least, std::int64_t most, std::int64_t& to) const {
    const Json* const value = find(name);
    if (value == nullptr) return;
    const auto number = whole_number(*value);
    if (!number || *number < least || *number > most)
      refuse("{}: takes a whole number from {} to {}", name, least, most);
    to = *number;
  }
  void take(const char* name, double least, double most, double& to) const {
    const Json* const value = find(name);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number >= least && number <= most))
      refuse("{}: takes a number from {} to {}", name, least, most);
    to = number;
  }
  void take(const char* name, bool& to) const {
    const Json* const value = find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) refuse("{}: takes true or false", name);
    to = value->get<bool>();
  }
  // Throws for a member that would change a text, unless its value has no effect.
  void refuse_other(const char* name, const Json& neutral) const {
    const Json* const value = find(name);
    if (value == nullptr || *value == neutral) return;
    if (value->is_structured() && value->empty()) return;
    refuse("{}: is not supported; leave it out", name);
  }

 private:
  const Json& json_;
};

std::vector<std::int64_t> ids_of(const Json& list) {
  std::vector<std::int64_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
      refuse("prompt: {} is not a token id", core::dump(id).substr(0, 40));
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

std::vector<CompletionPrompt> prompts_of(const Json& prompt) {
  std::vector<CompletionPrompt> prompts;
  const auto add_ids = [&](const Json& list) {
    if (list.empty()) refuse("prompt: a list of token ids is empty");
    prompts.push_back({{}, ids_of(list)});
  };
  if (prompt.is_string()) {
    prompts.push_back({prompt.get<std::string>()});
    return prompts;
  }
  if (!prompt.is_array() || prompt.empty())
    refuse("prompt: takes a text, a list of ids, or a list of these");
  if (prompt[0].is_number()) {
    add_ids(prompt);
    return prompts;
  }
  for (const Json& one : prompt) {
    if (one.is_string())
      prompts.push_back({one.get<std::string>()});
    else if (one.is_array())
      add_ids(one);
    else
      refuse("prompt: takes a text, a list of ids, or a list of these");
  }
  return prompts;
}

void take_stop(const Json& stop, const CompletionLimits& limits, CompletionRequest& request) {
  const auto add = [&](const Json& text) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty())
      refuse("stop: takes a non-empty text, or a list of them");
    request.stop.push_back(text.get<std::string>());
  };
  if (!stop.is_array()) return add(stop);
  if (static_cast<std::int64_t>(stop.size()) > limits.stops)
    refuse("stop: takes at most {} texts", limits.stops);
  for (const Json& text : stop) add(text);
}

void take_logprobs(const Members& members, const CompletionLimits& limits,
                   CompletionRequest& request) {
  if (!request.chat) {
    std::int64_t likely = -1;
    const Json* const value = members.find("logprobs");
    if (value != nullptr && value->is_boolean())
      likely = value->get<bool>() ? 0 : -1;
    else
      members.take("logprobs", std::int64_t{0}, limits.likely, likely);
    if (likely >= 0) request.logprobs = likely;
    return;
  }
  bool asked = false;
  std::int64_t likely = 0;
  members.take("logprobs", asked);
  members.take("top_logprobs", std::int64_t{0}, limits.likely, likely);
  if (asked) request.logprobs = likely;
}

// Refuses the members of OpenAI's, vLLM's and llama.cpp's requests that would change a text.
void refuse_unknown(const Members& members, const CompletionRequest& request) {
  for (const char* name : {"presence_penalty", "frequency_penalty", "min_p", "min_tokens",
                           "mirostat", "dry_multiplier", "xtc_probability"})
    members.refuse_other(name, 0);
  for (const char* name : {"repetition_penalty", "repeat_penalty", "typical_p", "length_penalty"})
    members.refuse_other(name, 1);
  for (const char* name :
       {"ignore_eos", "use_beam_search", "include_stop_str_in_output", "continue_final_message"})
    members.refuse_other(name, false);
  members.refuse_other("add_generation_prompt", true);
  members.refuse_other("best_of", request.n);
  members.refuse_other("suffix", "");
  members.refuse_other("response_format", Json{{"type", "text"}});
  for (const char* name :
       {"logit_bias", "tools", "functions", "grammar", "json_schema", "structured_outputs",
        "guided_json", "guided_regex", "guided_choice", "guided_grammar", "stop_token_ids",
        "bad_words", "logits_processors", "n_predict", "truncate_prompt_tokens", "chat_template",
        "chat_template_kwargs"})
    members.refuse_other(name, Json());
  if (request.chat) members.refuse_other("echo", false);
}

// Chat templates take texts: the parts of a message become one text, with a line for each.
Json with_texts(Json messages) {
  for (Json& message : messages) {
    if (!message.is_object() || !message.contains("content")) continue;
    Json& content = message["content"];
    if (!content.is_array()) continue;
    std::string text;
    for (std::size_t i = 0; i < content.size(); ++i) {
      const Json& part = content[i];
      const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                           part.value("text", Json()).is_string();
      if (!is_text)
        refuse("messages: content: takes a text, or a list of {{\"type\": \"text\", \"text\"}}");
      text += (i > 0 ? "\n" : "") + part["text"].get_ref<const std::string&>();
    }
    content = std::move(text);
  }
  return messages;
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
  std::int64_t offset = 0;  // in characters
  for (const auto& token : tokens) {
    texts.push_back(token_text(token.text));
    log_probs.push_back(number_or_null(token.log_prob));
    OrderedJson words = OrderedJson::object();
    // Of tokens with one text, the most probable.
    for (const auto& [text, log_prob] : token.likely)
      if (const auto key = token_text(text); !words.contains(key)) words[key] = log_prob;
    likely.push_back(token.log_prob ? std::move(words) : OrderedJson());
    offsets.push_back(offset);
    offset += std::count_if(token.text.begin(), token.text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(log_probs)},
          {"top_logprobs", std::move(likely)},
          {"text_offset", std::move(offsets)}};
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

OrderedJson usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion}};
}

}  // namespace

CompletionRequest parse_completion(const std::string& body, bool chat,
                                   const CompletionLimits& limits) {
  const Json json = json_object(body);
  const Members members(json);
  CompletionRequest request;
  request.chat = chat;
  if (const Json* const model = members.find("model"); model != nullptr && model->is_string())
    request.model = model->get<std::string>();
  if (chat) request.max_tokens = limits.chat_tokens;
  members.take("max_tokens", std::int64_t{chat ? 1 : 0}, limits.max_tokens, request.max_tokens);
  if (chat)
    members.take("max_completion_tokens", std::int64_t{1}, limits.max_tokens, request.max_tokens);
  members.take("n", std::int64_t{1}, limits.texts, request.n);
  members.take("temperature", 0., 1e6, request.temperature);
  members.take("top_p", 0., 1., request.top_p);
  if (request.top_p == 0) refuse("top_p: takes a number above 0 to 1");
  members.take("top_k", std::int64_t{0}, std::int64_t{1} << 31, request.top_k);
  std::int64_t seed = -1;
  members.take("seed", std::int64_t{0}, std::int64_t{1} << 53, seed);
  if (seed >= 0) request.seed = static_cast<std::uint64_t>(seed);
  members.take("stream", request.stream);
  if (const Json* const options = members.find("stream_options"); options != nullptr) {
    if (!options->is_object()) refuse("stream_options: takes an object");
    Members(*options).take("include_usage", request.usage);
  }
  if (const Json* const stop = members.find("stop"); stop != nullptr)
    take_stop(*stop, limits, request);
  take_logprobs(members, limits, request);
  if (const Json* const memory = members.find("memory"); memory != nullptr) {
    if (!memory->is_object()) refuse("memory: takes an object of options");
    if (!memory->empty()) request.memory = core::dump(*memory);
  }
  refuse_unknown(members, request);
  if (request.stream && request.logprobs) refuse("logprobs: cannot be combined with stream");
  if (chat) {
    const Json* const messages = members.find("messages");
    if (messages == nullptr || !messages->is_array()) refuse("messages: takes a list of messages");
    request.messages = core::dump(with_texts(*messages));
    return request;
  }
  members.take("echo", request.echo);
  const Json* const prompt = members.find("prompt");
  if (prompt == nullptr) refuse("prompt: is missing");
  request.prompts = prompts_of(*prompt);
  if (static_cast<std::int64_t>(request.prompts.size()) > limits.texts / request.n)
    refuse("prompt: takes at most {} texts, {} of each prompt", limits.texts, request.n);
  return request;
}

OrderedJson completion_json(const CompletionHead& head,
                            const std::vector<CompletionChoice>& choices,
                            const CompletionUsage& usage) {
  OrderedJson json = head_json(head, false);
  json["choices"] = OrderedJson::array();
  for (const auto& choice : choices) {
    OrderedJson one{{"index", choice.index}};
    if (head.chat)
      one["message"] = {{"role", "assistant"}, {"content", choice.text}};
    else
      one["text"] = choice.text;
    one["logprobs"] = nullptr;
    if (choice.tokens)
      one["logprobs"] = head.chat ? chat_tokens(*choice.tokens) : completion_tokens(*choice.tokens);
    one["finish_reason"] = choice.finish;
    if (!choice.extra.is_null()) one["tessera"] = choice.extra;
    json["choices"].push_back(std::move(one));
  }
  json["usage"] = usage_json(usage);
  return json;
}

OrderedJson completion_chunk(const CompletionHead& head, const CompletionChoice& piece,
                             bool first) {
  OrderedJson json = head_json(head, true);
  OrderedJson one{{"index", piece.index}};
  if (head.chat) {
    one["delta"] = OrderedJson::object();
    if (first) one["delta"]["role"] = "assistant";
    if (first || !piece.text.empty()) one["delta"]["content"] = piece.text;
  } else {
    one["text"] = piece.text;
  }
  one["logprobs"] = nullptr;
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
