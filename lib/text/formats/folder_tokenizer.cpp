// Loads tokenizers by a path that a user gives: a file, a folder, or a name.

#include <charconv>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "core/json.h"
#include "core/path_kind.h"
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
  core::fail(core::Code::bad_data,
             "{}: vocab.json and merges.txt of a {} do not define how it splits a text; save it as "
             "tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
             folder, found);
}

// Refuses a path of another kind and says what it is.
void expect_tokenizer_kind(const std::string& path, PathKind kind) {
  switch (kind) {
    case PathKind::gguf:
      core::fail(
          core::Code::bad_data,
          "{}: is a GGUF file of a model; convert it with model import {} -o DIR, and give -t DIR",
          path, path);
    case PathKind::safetensors:
    case PathKind::torch_file:
    case PathKind::shard:
    case PathKind::passages:
    case PathKind::lfs_pointer:
      core::fail(core::Code::bad_data, "{}: {}, not a tokenizer", path, core::what_path_is(path));
    case PathKind::nothing:
    case PathKind::broken_link:
      core::fail(
          core::Code::no_input, "{}: {}; {}{}", path, core::what_path_is(path), kGive,
          path.find_first_not_of("0123456789") == path.npos ? "; the number of threads is -j" : "");
    case PathKind::hub_id:
      core::refuse_hub_id(path);
    default:
      return;
  }
}

// Reads what tokenizer_config.json adds to a tokenizer.model: tokens, and the tokens around a text.
SentencepieceAround around_of(const std::string& folder) {
  SentencepieceAround around;
  const std::string path = folder + "/tokenizer_config.json";
  if (!core::exists(path)) return around;
  const auto config = core::read_json(path, kTokenizerConfigBytes);
  if (!config.is_object()) return around;
  const auto name = config.value("tokenizer_class", core::Json(nullptr));
  const bool begins = name.is_string() && (name.get<std::string>().starts_with("Llama") ||
                                           name.get<std::string>().starts_with("Gemma"));
  const auto flag = [&](const char* key, bool otherwise) {
    const auto found = config.find(key);
    return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
  };
  around.begin = flag("add_bos_token", begins);
  around.end = flag("add_eos_token", false);
  const auto tokens = config.value("added_tokens_decoder", core::Json::object());
  for (const auto& [id, token] : tokens.items()) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc{} || end != id.data() + id.size() || !token.is_object() ||
        !token.contains("content") || !token["content"].is_string())
      core::fail(core::Code::bad_data, "{}: added_tokens_decoder: {} is not a token", path, id);
    around.added[number] = {token["content"].get<std::string>(), token.value("special", false)};
  }
  return around;
}

TokenizerPtr sentencepiece_tokenizer(const std::string& path,
                                     const SentencepieceAround& around = {}) {
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
    core::fail(
        core::Code::usage,
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
    core::fail(core::Code::bad_data,
               "{}: a WordPiece tokenizer (vocab.txt, as in BERT) is not supported", folder);
  if (const auto other = folder + "/tokenizer.model"; core::exists(other))
    return parse_tokenizer(core::read_text(other, kTokenizerBytes), other);  // says what it is
  core::fail(core::Code::no_input, "{}: has no tokenizer; {}", folder, kGive);
}

}  // namespace text
