#include "serve/token_api.h"

#include "serve/members.h"

namespace serve {
namespace {

constexpr std::size_t kMostText = std::size_t{16} << 20;  // bytes of the text of ids

core::OrderedJson text_of(const text::Tokenizer& tokenizer, std::optional<std::int64_t> id) {
  if (!id || *id < 0) return nullptr;
  return std::string(tokenizer.token(static_cast<std::uint32_t>(*id)));
}

// Returns the text that a conversation becomes, and the passages in it.
std::string chat_text(const ServedTokenizer& served, const std::string& messages,
    core::OrderedJson* retrieved = nullptr) {
  const std::string origin = "the request";
  if (served.chat == nullptr) refuse("messages: the model has no chat template");
  try {
    const auto turns = text::parse_messages(messages, origin);
    const bool has_system = !turns.empty() && turns[0].is_object() &&
                            turns[0].value("role", core::OrderedJson()) == "system";
    return served.chat->prompt(turns, has_system ? "" : served.system, origin, retrieved);
  } catch (const core::Error& error) {
    std::string what = error.what();
    if (served.folder.find('/') != std::string::npos)
      for (std::size_t at = 0; (at = what.find(served.folder, at)) != what.npos;)
        what.replace(at, served.folder.size(), "the model");
    refuse("{}", what);
  }
}

std::string text_of_ids(
    const ServedTokenizer& served, const char* name, const std::vector<std::int64_t>& ids) {
  try {
    return served.tokenizer->decode(std::vector<std::uint32_t>(ids.begin(), ids.end()));
  } catch (const core::Error& error) { refuse("{}: {}", name, error.what()); }
}

void expect_token(const ServedTokenizer& served, const char* name, std::int64_t id) {
  const auto size = static_cast<std::int64_t>(served.tokenizer->size());
  if (id < 0 || id >= size)
    refuse("{}: {} is not a token id; the tokenizer has {} tokens", name, id, size);
}

}  // namespace

std::vector<std::int64_t> ServedTokenizer::encode(
    std::string_view text, bool begins, bool parses) const {
  std::vector<std::int64_t> tokens;
  if (begins) tokens = begin;
  for (const auto id : (parses ? parsing : tokenizer)->encode(std::string(text)))
    tokens.push_back(id);
  return tokens;
}

void encode_prompts(
    CompletionRequest& request, const ServedTokenizer& served, std::int64_t most_scored) {
  if (request.chat) request.prompts = {{chat_text(served, request.messages, &request.retrieved)}};
  request.messages.clear();
  std::int64_t tokens = 0;
  for (auto& prompt : request.prompts) {
    if (prompt.tokens.empty()) {
      prompt.tokens = served.encode(prompt.text, request.begins, request.parses);
      prompt.before = request.begins ? std::ssize(served.begin) : 0;
      if (prompt.tokens.empty())
        prompt.tokens = served.empty, prompt.before = std::ssize(served.empty);
      if (prompt.tokens.empty())
        refuse("prompt: is empty, and the tokenizer has no BOS token; give text");
    } else {
      for (const auto id : prompt.tokens) expect_token(served, "prompt", id);
      if (request.echo) prompt.text = text_of_ids(served, "prompt", prompt.tokens);
    }
    if (!request.echo) prompt.text = {};
    const auto length = std::ssize(prompt.tokens);
    tokens += length;
    if (request.max_tokens > 0 && length > served.window)
      refuse("the prompt has {} tokens, more than the window of {}", length, served.window);
  }
  if (request.logprobs && tokens > most_scored / request.n)
    refuse(
        "logprobs: the prompts have {} tokens, and {} texts each; the server scores at most {} "
        "tokens of a request",
        tokens, request.n, most_scored);
  for (const auto& [id, bias] : request.biases) expect_token(served, "logit_bias", id);
  for (const auto id : request.allowed) expect_token(served, "allowed_token_ids", id);
}

std::string tokenizer_info(const ServedTokenizer& served) {
  const auto& tokenizer = *served.tokenizer;
  return core::dump(core::OrderedJson{
      {"tokenizer_class", std::string(text::name_of(tokenizer.kind()))},
      {"bos_token", text_of(tokenizer, served.beginning)},
      {"eos_token", text_of(tokenizer, tokenizer.end_of_document())},
      {"model_max_length", served.window},
  });
}

std::string tokenize(const ServedTokenizer& served, const std::string& body) {
  const auto json = json_object(body);
  const Members members(json);
  const auto *const prompt = members.find("prompt"), *const content = members.find("content"),
                    *const messages = members.find("messages");
  const auto* const text = prompt != nullptr ? prompt : content;
  if ((text == nullptr) == (messages == nullptr) || (prompt != nullptr && content != nullptr))
    refuse("prompt: takes a text, and is given alone or as content, or messages are");
  if (text != nullptr && !text->is_string()) refuse("prompt: takes a text");
  bool begins = prompt != nullptr, parses = true;
  members.take("add_special", begins);
  members.take("add_special_tokens", begins);
  members.take("parse_special", parses);
  members.find("model");
  members.refuse_others();
  const auto tokens = served.encode(
      text != nullptr ? text->get<std::string>() : chat_text(served, core::dump(*messages)), begins,
      parses);
  return fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", tokens.size(),
      served.window, fmt::join(tokens, ","));
}

std::string detokenize(const ServedTokenizer& served, const std::string& body) {
  const auto json = json_object(body);
  const Members members(json);
  const auto* const tokens = members.find("tokens");
  members.find("model");
  members.refuse_others();
  if (tokens == nullptr || !tokens->is_array()) refuse("tokens: takes a list of ids");
  std::vector<std::int64_t> ids;
  std::size_t bytes = 0;
  for (const auto& id : *tokens) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= served.tokenizer->size())
      refuse("tokens: {} is no id of a token", core::dump(id).substr(0, 40));
    ids.push_back(id.get<std::int64_t>());
    if ((bytes += served.tokenizer->token(id.get<std::uint32_t>()).size()) > kMostText)
      refuse("tokens: their text has more than {} bytes", kMostText);
  }
  const auto text = core::dump(core::OrderedJson(text_of_ids(served, "tokens", ids)));
  return fmt::format(R"({{"prompt":{0},"content":{0}}})", text);
}

}  // namespace serve
