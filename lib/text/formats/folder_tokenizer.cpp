// Tokenizers by a path that a user gives: a file, a folder, a word.

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "core/json.h"
#include "core/path_kind.h"
#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/byte_level.h"

namespace text {
namespace {

using core::PathKind;

constexpr std::size_t kTokenizerBytes = std::size_t{256} << 20;
constexpr std::size_t kTokenizerConfigBytes = std::size_t{1} << 24;
constexpr const char* kSentencepiece =
    "a sentencepiece model, which is not read; transformers makes a tokenizer.json of it: "
    "AutoTokenizer.from_pretrained(MODEL).save_pretrained(DIR)";

// The two files are those of every byte-level BPE; only of GPT-2's they say all.
void expect_gpt2_class(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  if (!core::exists(path)) return;
  const core::Json config = core::read_json(path, kTokenizerConfigBytes);
  const auto name = config.is_object() ? config.find("tokenizer_class") : config.end();
  if (name == config.end() || !name->is_string()) return;
  const auto& found = name->get_ref<const std::string&>();
  if (found == "GPT2Tokenizer" || found == "GPT2TokenizerFast") return;
  core::fail(core::Code::bad_data,
             "{}: vocab.json and merges.txt of a {}, which do not say how it splits a text; "
             "save it as tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
             folder, found);
}

// Refuses a path of another kind by what it is.
void expect_tokenizer_kind(const std::string& path, PathKind kind) {
  switch (kind) {
    case PathKind::sentencepiece:
      core::fail(core::Code::bad_data, "{}: {}", path, kSentencepiece);
    case PathKind::gguf:
    case PathKind::safetensors:
    case PathKind::torch_file:
    case PathKind::shard:
    case PathKind::lfs_pointer:
      core::fail(core::Code::bad_data, "{}: {}, not a tokenizer", path, core::what_path_is(path));
    case PathKind::hub_id:
      core::refuse_hub_id(path);
    default:
      return;
  }
}

}  // namespace

TokenizerPtr folder_tokenizer(const std::string& folder) {
  const std::string whole = folder + "/tokenizer.json";
  const std::string vocabulary = folder + "/vocab.json", merges = folder + "/merges.txt";
  if (core::exists(whole)) return parse_tokenizer(core::read_file(whole, kTokenizerBytes), whole);
  if (!core::exists(vocabulary) || !core::exists(merges)) return nullptr;
  expect_gpt2_class(folder);
  return import_tokenizer({vocabulary, merges});
}

std::string no_tokenizer_hint(const std::string& folder) {
  if (core::path_kind(folder + "/tokenizer.model") != PathKind::sentencepiece) return {};
  return fmt::format(" (its tokenizer.model is {})", kSentencepiece);
}

TokenizerPtr load_tokenizer(const std::string& path) {
  if (path.empty())
    core::fail(core::Code::usage, "give a tokenizer: -t tokenizer.json, or -t bytes; see --help");
  if (path == "bytes") return make_bytes_tokenizer();
  if (path == "-") return parse_tokenizer(core::read_text(path, kTokenizerBytes), "stdin");
  const auto kind = core::path_kind(path);
  expect_tokenizer_kind(path, kind);
  if (!core::is_folder(kind)) return parse_tokenizer(core::read_text(path, kTokenizerBytes), path);
  const auto folder = core::followed_snapshot(path);
  if (auto tokenizer = folder_tokenizer(folder)) return tokenizer;
  core::fail(core::Code::no_input,
             "{}: no tokenizer in it{}; give a tokenizer.json, or a folder with one", folder,
             no_tokenizer_hint(folder));
}

}  // namespace text
