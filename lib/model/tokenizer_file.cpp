#include "model/tokenizer_file.h"

#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/tokenizer.h"

namespace model {

std::string read_tokenizer(const std::string& folder) {
  const auto tokenizer = text::folder_tokenizer(folder);
  return tokenizer ? tokenizer->json() : "";
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto id = text::parse_tokenizer(tokenizer, "tokenizer.json")->end_of_document();
  return id ? static_cast<std::int64_t>(*id) : -1;
}

}  // namespace model
