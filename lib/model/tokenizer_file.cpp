#include "model/tokenizer_file.h"

#include <filesystem>

#include "text/import.h"
#include "text/tokenizer.h"

namespace model {
namespace {

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::string read_tokenizer(const std::string& folder) {
  const std::string whole = folder + "/tokenizer.json";
  const std::string vocabulary = folder + "/vocab.json", merges = folder + "/merges.txt";
  if (is_there(whole)) return text::load_tokenizer(whole)->json();
  if (!is_there(vocabulary) || !is_there(merges)) return "";
  return text::import_tokenizer({vocabulary, merges})->json();
}

std::int64_t end_of_document(const std::string& tokenizer) {
  if (tokenizer.empty()) return -1;
  const auto id = text::parse_tokenizer(tokenizer, "tokenizer.json")->end_of_document();
  return id ? static_cast<std::int64_t>(*id) : -1;
}

}  // namespace model
