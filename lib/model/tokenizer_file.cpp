#include "model/tokenizer_file.h"

#include <filesystem>

#include "core/io.h"
#include "core/json.h"

namespace model {
namespace {

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::string read_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  return is_there(path) ? core::dump(core::parse_json(core::read_text(path), path)) : "";
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto json = core::parse_json(tokenizer, "tokenizer.json");
  for (const auto& token : json.value("added_tokens", core::Json::array()))
    if (token.value("content", "") == "<|endoftext|>") return token.value("id", -1);
  return -1;
}

}  // namespace model
