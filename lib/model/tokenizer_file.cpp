#include "model/tokenizer_file.h"

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "core/json.h"
#include "model/gguf/gguf_tokenizer.h"
#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace model {
namespace {

constexpr std::size_t kTokenizerBytes = std::size_t{256} << 20;
constexpr std::size_t kConfigBytes = std::size_t{1} << 24;

// The two files are those of every byte-level BPE; only of GPT-2's they say all.
void expect_gpt2_class(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  if (!core::exists(path)) return;
  const core::Json config = core::read_json(path, kConfigBytes);
  const auto name = config.is_object() ? config.find("tokenizer_class") : config.end();
  if (name == config.end() || !name->is_string()) return;
  const auto& found = name->get_ref<const std::string&>();
  if (found == "GPT2Tokenizer" || found == "GPT2TokenizerFast") return;
  core::fail(core::Code::bad_data,
             "{}: vocab.json and merges.txt of a {}, which do not say how it splits a text; "
             "save it as tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
             folder, found);
}

}  // namespace

std::string tokenizer_path(const std::string& folder) {
  return is_gguf(folder) ? folder : folder + "/tokenizer.json";
}

std::string read_tokenizer(const std::string& folder) {
  if (is_gguf(folder)) {
    const auto json = gguf_tokenizer(GgufFile(folder));
    return json.empty() ? json : text::parse_tokenizer(json, folder)->json();
  }
  const std::string whole = folder + "/tokenizer.json";
  const std::string vocabulary = folder + "/vocab.json", merges = folder + "/merges.txt";
  if (core::exists(whole))
    return text::parse_tokenizer(core::read_file(whole, kTokenizerBytes), whole)->json();
  if (!core::exists(vocabulary) || !core::exists(merges)) return "";
  expect_gpt2_class(folder);
  return text::import_tokenizer({vocabulary, merges})->json();
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto id = text::parse_tokenizer(tokenizer, "tokenizer.json")->end_of_document();
  return id ? static_cast<std::int64_t>(*id) : -1;
}

}  // namespace model
