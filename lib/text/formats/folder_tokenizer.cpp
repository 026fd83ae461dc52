// Loads tokenizers by a path that a user gives: a file, a folder, or a name.

#include "core/file_text.h"
#include "core/path_kind.h"
#include "core/units.h"
#include "text/formats/import.h"
#include "text/formats/sentencepiece.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/byte_level.h"

namespace text {
namespace {

using core::PathKind;

constexpr std::size_t kTokenizerBytes = std::size_t{256} << 20;
constexpr std::size_t kTokenizerConfigBytes = std::size_t{1} << 24;
constexpr const char* kGive = "give a tokenizer.json, or a folder with one";

// Every byte-level BPE may have these two files; only GPT-2's is fully described by them.
void expect_gpt2_class(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  if (!core::exists(path)) return;
  const core::Json config = core::read_json(path, kTokenizerConfigBytes);
  const auto name = config.is_object() ? config.find("tokenizer_class") : config.end();
  if (name == config.end() || !name->is_string()) return;
  const auto& found = name->get_ref<const std::string&>();
  if (found == "GPT2Tokenizer" || found == "GPT2TokenizerFast") return;
  core::bad_data(
      "{}: vocab.json and merges.txt of a {} do not define how it splits a text; save it as "
      "tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
      folder, found);
}

// Refuses a path of another kind and says what it is.
void expect_tokenizer_kind(const std::string& path, PathKind kind) {
  switch (kind) {
    case PathKind::gguf:
      core::bad_data(
          "{}: is a GGUF file of a model; convert it with model import {} -o DIR, and give -t DIR",
          path, path);
    case PathKind::safetensors:
    case PathKind::torch_file:
    case PathKind::shard:
    case PathKind::passages:
    case PathKind::lfs_pointer:
      core::bad_data("{}: {}, not a tokenizer", path, core::what_path_is(path));
    case PathKind::nothing:
    case PathKind::broken_link:
      core::fail(core::Code::no_input, "{}: {}; {}{}", path, core::what_path_is(path), kGive,
          path.find_first_not_of("0123456789") == path.npos ? "; the number of threads is -j" : "");
    case PathKind::hub_id: core::refuse_hub_id(path);
    default: return;
  }
}

bool flag_of(const core::Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// Returns whether a configuration gives the token a special role.
bool names_special(const core::Json& config, const std::string& token) {
  const auto is = [&](const core::Json& named) {
    return (named.is_object() ? named.value("content", core::Json()) : named) == token;
  };
  for (const auto& [key, named] : config.items())
    if (named.is_array() && key.ends_with("_special_tokens") ? std::ranges::any_of(named, is)
                                                             : key.ends_with("_token") && is(named))
      return true;
  return false;
}

// Reads added_tokens.json, in which older folders have their added tokens, as added_tokens_decoder.
core::Json older_tokens(
    const std::string& folder, const core::Json& config, const core::Json& map) {
  auto tokens = core::Json::object();
  const auto path = folder + "/added_tokens.json";
  if (!core::exists(path)) return tokens;
  const auto ids = core::read_json(path, kTokenizerConfigBytes);
  for (const auto& [text, id] : ids.items())
    tokens[core::dump(id)] = {
        {"content", text}, {"special", names_special(config, text) || names_special(map, text)}};
  return tokens;
}

// Reads an added token: a text, which is special, or an object. Returns nothing for other values.
std::optional<AddedToken> added_token(const core::Json& token) {
  if (token.is_string()) return AddedToken{0, token.get<std::string>(), true};
  if (!token.is_object() || !token.value("content", core::Json()).is_string()) return std::nullopt;
  const auto has = [&](const char* key, bool otherwise) { return flag_of(token, key, otherwise); };
  const bool special = has("special", false);
  return AddedToken{0, token["content"].get<std::string>(), special, has("normalized", !special),
      has("lstrip", false), has("rstrip", false), has("single_word", false)};
}

// Reads the special tokens by role, and those of a list. A list, even an empty one, replaces the
// model's own, as in transformers' LlamaTokenizer.
void read_special(const std::string& folder, const core::Json& config, const core::Json& map,
    SentencepieceAround& around) {
  auto list = config.value("extra_special_tokens", core::Json::object());
  if (list.empty() && config.contains("additional_special_tokens"))
    list = config["additional_special_tokens"];
  core::Json roles = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  roles.update(config);
  if (map.is_object()) roles.update(map);
  if (list.is_object())
    for (const auto& [role, token] : list.items()) roles[role + "_token"] = token;
  for (const auto& [role, value] : roles.items())
    if (const auto token = added_token(value); token && role.ends_with("_token"))
      around.roles.insert(token->content);
  if (list.is_object()) return;
  around.list.emplace();
  for (const auto& value : list) {
    const auto token = added_token(value);
    if (!token) core::bad_data("{}: special tokens: {} is no token", folder, core::dump(value));
    around.list->push_back(*token);
  }
}

// Reads what tokenizer_config.json adds to a tokenizer.model: tokens, and the tokens around a text.
SentencepieceAround around_of(const std::string& folder) {
  SentencepieceAround around;
  const std::string path = folder + "/tokenizer_config.json";
  if (!core::exists(path)) return around;
  const auto config = core::read_json(path, kTokenizerConfigBytes);
  if (!config.is_object()) return around;
  const auto named = config.value("tokenizer_class", core::Json(nullptr));
  const auto name = named.is_string() ? named.get<std::string>() : "";
  const bool begins = name.starts_with("Llama") || name.starts_with("Gemma");
  around.begin = flag_of(config, "add_bos_token", begins);
  around.end = flag_of(config, "add_eos_token", false);
  around.llama = name == "LlamaTokenizer" || name == "LlamaTokenizerFast";
  around.legacy = flag_of(config, "legacy", !around.llama);
  around.prefix = flag_of(config, "add_prefix_space", true);
  const auto map_path = folder + "/special_tokens_map.json";
  const bool older = !config.contains("added_tokens_decoder");
  const auto map = older && core::exists(map_path)
                       ? core::read_json(map_path, kTokenizerConfigBytes)
                       : core::Json::object();
  const auto tokens = older ? older_tokens(folder, config, map) : config["added_tokens_decoder"];
  for (const auto& [id, given] : tokens.items()) {
    const auto number = core::read_number<std::uint32_t>(id);
    const auto token = given.is_object() ? added_token(given) : std::nullopt;
    if (!number || !token) core::bad_data("{}: added tokens: {} is not a token", folder, id);
    around.added[*number] = *token;
  }
  read_special(folder, config, map, around);
  return around;
}

TokenizerPtr sentencepiece_tokenizer(
    const std::string& path, const SentencepieceAround& around = {}) {
  const auto bytes = core::read_file(path, kTokenizerBytes);
  return parse_tokenizer(sentencepiece_json(bytes, path, around), path);
}

// A text of such a name is a list of tiktoken's ranks.
bool is_sentencepiece(const std::string& path, PathKind kind) {
  if (kind == PathKind::sentencepiece) return true;
  return path.ends_with(".model") && kind != PathKind::text && !core::is_folder(kind) &&
         core::exists(path);
}

}  // namespace

TokenizerPtr folder_tokenizer(const std::string& folder) {
  const std::string whole = folder + "/tokenizer.json";
  const std::string vocabulary = folder + "/vocab.json", merges = folder + "/merges.txt";
  if (core::exists(whole)) return parse_tokenizer(core::read_file(whole, kTokenizerBytes), whole);
  const std::string pieces = folder + "/tokenizer.model";
  if (const auto kind = core::path_kind(pieces); is_sentencepiece(pieces, kind)) {
    expect_tokenizer_kind(pieces, kind);
    return sentencepiece_tokenizer(pieces, around_of(folder));
  }
  if (!core::exists(vocabulary) || !core::exists(merges)) return nullptr;
  expect_gpt2_class(folder);
  return import_tokenizer({vocabulary, merges});
}

TokenizerPtr load_tokenizer(const std::string& path) {
  if (path.empty())
    core::bad_usage(
        "give a tokenizer: -t tokenizer.json, -t MODEL (a folder with one) or -t bytes; see --help");
  if (path == "bytes") return make_bytes_tokenizer();
  if (path == "-") return parse_tokenizer(core::read_text(path, kTokenizerBytes), "stdin");
  const auto kind = core::path_kind(path);
  expect_tokenizer_kind(path, kind);
  if (is_sentencepiece(path, kind)) return sentencepiece_tokenizer(path);
  if (!core::is_folder(kind)) return parse_tokenizer(core::read_text(path, kTokenizerBytes), path);
  const auto folder = core::followed_snapshot(path);
  if (auto tokenizer = folder_tokenizer(folder)) return tokenizer;
  if (core::exists(folder + "/vocab.txt"))
    core::bad_data("{}: a WordPiece tokenizer (vocab.txt, as in BERT) is not supported", folder);
  if (const auto other = folder + "/tokenizer.model"; core::exists(other))
    return parse_tokenizer(core::read_text(other, kTokenizerBytes), other);  // says what it is
  core::fail(core::Code::no_input, "{}: has no tokenizer; {}", folder, kGive);
}

}  // namespace text
