#include "model/tokenizer_file.h"

#include <malloc.h>

#include "core/file_text.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/model_path.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

constexpr const char* kEndKey = "eos_token_id";
constexpr std::size_t kGenerationConfigLimit = std::size_t{1} << 24;  // bytes

std::optional<std::vector<std::int64_t>> ends_in(
    const core::Json& config, const std::string& origin) {
  if (!config.is_object()) return std::nullopt;
  const auto found = config.find(kEndKey);
  if (found == config.end() || found->is_null()) return std::nullopt;
  std::vector<std::int64_t> ids;
  for (const auto& id : found->is_array() ? *found : core::Json::array({*found})) {
    if (!id.is_number_integer())
      core::bad_config("{}: \"{}\" takes a token id or a list of token ids", origin, kEndKey);
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

}  // namespace

std::string tokenizer_path(const std::string& folder) {
  return is_gguf(folder) ? folder : folder + "/tokenizer.json";
}

std::string read_tokenizer(const std::string& folder) {
  if (is_gguf(folder)) {
    auto json = gguf_tokenizer(GgufFile(folder));
    if (!json.empty()) json = text::parse_tokenizer(json, folder)->json();
    ::malloc_trim(0);  // objects of JSON took ten times its size, in holes that little would fill
    return json;
  }
  const auto tokenizer = text::folder_tokenizer(folder);
  return tokenizer ? tokenizer->json() : "";
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto id = text::parse_tokenizer(tokenizer, "tokenizer.json")->end_of_document();
  return id ? static_cast<std::int64_t>(*id) : -1;
}

std::string chat_source_of(const std::string& given) {
  const std::string path = model_folder(given, Beside::left);
  if (is_gguf(path))
    return std::string(GgufFile(path).text("tokenizer.chat_template").value_or(""));
  const auto chat = text::Chat::of_folder(path);
  return chat ? chat->source() : "";
}

text::Chat chat_of(const std::string& given) {
  const std::string path = model_folder(given, Beside::left);
  if (!is_gguf(path)) return text::Chat::in_folder(path);
  const GgufFile file(path);
  const auto source = file.text("tokenizer.chat_template");
  if (!source) core::bad_data("{}: has no tokenizer.chat_template", path);
  return {text::ChatTemplate(std::string(*source), path), gguf_special_tokens(file)};
}

text::TokenizerPtr tokenizer_of(const std::string& path) {
  const auto folder = model_folder(path);
  const auto json = read_tokenizer(folder);
  if (json.empty())
    core::fail(core::Code::no_input,
        "{}: has no tokenizer, so it reads shards but not texts; encode the texts with tokenize",
        folder);
  return text::parse_tokenizer(json, tokenizer_path(folder));
}

void read_texts_for(
    const std::string& path, std::int64_t jobs, std::function<void(const std::string&)> note) {
  text::read_texts({[path] { return tokenizer_of(path); }, "the model's", static_cast<int>(jobs),
      std::move(note)});
}

std::vector<std::int64_t> end_tokens(const std::string& folder, const core::Json& config) {
  const std::string path = folder + "/generation_config.json";
  if (core::exists(path))
    if (const auto ids = ends_in(core::read_json(path, kGenerationConfigLimit), path)) return *ids;
  return ends_in(config, folder + "/config.json").value_or(std::vector<std::int64_t>{});
}

}  // namespace model
