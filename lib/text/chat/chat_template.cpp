#include "text/chat/chat_template.h"

#include "core/file_text.h"
#include "core/json_line.h"
#include "text/chat/template_run.h"

namespace text {
namespace {

using core::Json;
using core::OrderedJson;

constexpr std::size_t kMostTemplate = std::size_t{1} << 22, kMostConfig = std::size_t{1} << 26;
// Limits of steps and bytes per byte of the template and of its variables.
constexpr std::size_t kStepsOfByte = 4, kBytesOfByte = 4;

// The texts of special tokens: "NAME_token": text or {"content": text}.
void take_tokens(const Json& config, OrderedJson& tokens) {
  if (!config.is_object()) return;
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token") || tokens.contains(key)) continue;
    const Json* text = &value;
    if (value.is_object() && value.contains("content")) text = &value.at("content");
    if (text->is_string()) tokens[key] = text->get<std::string>();
  }
}

std::optional<std::string> template_in(const Json& config, const std::string& origin) {
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array())
    core::bad_data("{}: \"chat_template\" is neither a text nor a list", origin);
  std::string names;
  for (const auto& one : *found) {
    const auto name = core::get<std::string>(one, "name", origin + ": chat_template");
    if (name == "default")
      return core::get<std::string>(one, "template", origin + ": chat_template");
    names += (names.empty() ? "" : ", ") + name;
  }
  core::bad_data("{}: \"chat_template\" has no template named default ({})", origin, names);
}

// Checks messages. Chat templates take texts, so the parts of a content become one text, with a
// line for each.
OrderedJson checked_messages(OrderedJson messages, const std::string& origin) {
  if (!messages.is_array() || messages.empty())
    core::bad_data("{}: messages: takes a non-empty list of {{\"role\", \"content\"}}", origin);
  for (auto& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message.at("role").is_string())
      core::bad_data("{}: messages: takes objects with a \"role\"", origin);
    if (!message.contains("content") || !message.at("content").is_array()) continue;
    std::string text;
    for (const auto& part : message.at("content")) {
      if (!part.is_object() || part.value("type", OrderedJson()) != "text" ||
          !part.value("text", OrderedJson()).is_string())
        core::bad_data(
            "{}: messages: content: takes a text, or a list of {{\"type\": \"text\", \"text\"}}",
            origin);
      if (&part != &message.at("content").front()) text += '\n';
      text += part.at("text").get_ref<const std::string&>();
    }
    message["content"] = std::move(text);
  }
  return messages;
}

}  // namespace

struct ChatTemplate::Parsed {
  chat::Block block;
};

ChatTemplate::ChatTemplate(std::string source, std::string origin)
    : source_(std::move(source)), origin_(std::move(origin)) {
  parsed_ = std::make_unique<const Parsed>(Parsed{chat::parse_template(source_, origin_)});
}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(
    const OrderedJson& variables, std::time_t now, const ChatLimits& limits) const {
  chat::Value all;
  try {
    all = chat::of_json(variables);
  } catch (const chat::Fault& fault) { core::bad_data("{}: {}", origin_, fault.what()); }
  if (all.dict() == nullptr) core::bad_data("{}: its variables are not a JSON object", origin_);
  const std::size_t given = source_.size() + 16 * chat::extent(all);
  const chat::Work work(limits.steps + kStepsOfByte * given, limits.bytes + kBytesOfByte * given);
  return chat::run_template(parsed_->block, *all.dict(), work, now, origin_);
}

std::optional<Chat> Chat::of_folder(const std::string& folder) {
  const std::string alone = folder + "/chat_template.jinja",
                    config_path = folder + "/tokenizer_config.json",
                    map_path = folder + "/special_tokens_map.json";
  OrderedJson tokens = OrderedJson::object();
  Json config;
  if (core::exists(config_path)) {
    config = core::read_json(config_path, kMostConfig);
    take_tokens(config, tokens);
  }
  if (core::exists(map_path)) take_tokens(core::read_json(map_path, kMostConfig), tokens);
  if (core::exists(alone))
    return Chat(ChatTemplate(core::read_file(alone, kMostTemplate), alone), std::move(tokens));
  auto source = template_in(config, config_path);
  if (!source) return std::nullopt;
  return Chat(ChatTemplate(*std::move(source), config_path + ": chat_template"), std::move(tokens));
}

Chat Chat::in_folder(const std::string& folder) {
  auto chat = of_folder(folder);
  if (!chat)
    core::bad_data(
        "{}: has no chat template (chat_template.jinja, or \"chat_template\" in "
        "tokenizer_config.json); add one",
        folder);
  return *std::move(chat);
}

core::Digest Chat::fingerprint() const {
  return core::hash128(template_.source() + "\n" + core::dump(tokens_));
}

std::string Chat::prompt(OrderedJson messages, const std::string& system, const std::string& origin,
    OrderedJson* revised) const {
  messages = checked_messages(std::move(messages), origin);
  if (revise_) {
    auto description = revise_(messages);
    if (revised != nullptr) *revised = std::move(description);
  }
  if (!system.empty()) {
    if (messages[0].at("role") == "system")
      core::bad_data(
          "{}: messages: already begin with a system message; leave --system out", origin);
    messages.insert(messages.begin(), OrderedJson{{"role", "system"}, {"content", system}});
  }
  return write(std::move(messages), true, origin);
}

std::vector<Chat::Part> Chat::parts(const OrderedJson& given, const std::string& origin) const {
  const OrderedJson messages = checked_messages(given, origin);
  const std::string whole = write(messages, false, origin);
  std::vector<Part> parts;
  OrderedJson before = OrderedJson::array();
  std::size_t at = 0;
  for (const auto& message : messages) {
    const bool answers = message.at("role") == "assistant";
    if (answers && before.empty()) core::bad_data("{}: messages: begin with an answer", origin);
    const std::string asked = answers ? write(before, true, origin) : std::string();
    before.push_back(message);
    if (!answers) continue;
    const std::string answered = write(before, false, origin);
    if (!answered.starts_with(asked))
      core::bad_data(
          "{}: the chat template does not begin turn {} as it begins an answer to be generated (as "
          "templates of reasoning models do not); give prompts and completions",
          origin, before.size());
    if (!whole.starts_with(answered) || asked.size() < at)
      core::bad_data(
          "{}: the chat template formats turn {} differently when later turns follow; give one "
          "line per answer, each with the conversation up to it",
          origin, before.size());
    parts.push_back({whole.substr(at, asked.size() - at), false});
    parts.push_back({whole.substr(asked.size(), answered.size() - asked.size()), true});
    at = answered.size();
  }
  if (at < whole.size()) parts.push_back({whole.substr(at), false});
  return parts;
}

std::string Chat::write(OrderedJson messages, bool asks, const std::string& origin) const {
  OrderedJson variables = tokens_;
  variables.update({{"messages", std::move(messages)}, {"tools", nullptr}, {"documents", nullptr},
      {"add_generation_prompt", asks}});
  try {
    return template_.render(variables, std::time(nullptr));
  } catch (const core::Error& error) { core::fail(error.code(), "{}: {}", origin, error.what()); }
}

OrderedJson parse_messages(const std::string& json, const std::string& origin) {
  return core::parse_ordered_json(core::mend_json(json).text, origin + ": messages");
}

OrderedJson user_turn(const std::string& text) {
  return OrderedJson::array({OrderedJson{{"role", "user"}, {"content", text}}});
}

}  // namespace text
