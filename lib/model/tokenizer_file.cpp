#include "model/tokenizer_file.h"

#include "model/gguf/gguf_tokenizer.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace model {

std::string tokenizer_path(const std::string& folder) {
  return is_gguf(folder) ? folder : folder + "/tokenizer.json";
}

std::string read_tokenizer(const std::string& folder) {
  if (is_gguf(folder)) {
    const auto json = gguf_tokenizer(GgufFile(folder));
    return json.empty() ? json : text::parse_tokenizer(json, folder)->json();
  }
  const auto tokenizer = text::folder_tokenizer(folder);
  return tokenizer ? tokenizer->json() : "";
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto id = text::parse_tokenizer(tokenizer, "tokenizer.json")->end_of_document();
  return id ? static_cast<std::int64_t>(*id) : -1;
}

}  // namespace model
