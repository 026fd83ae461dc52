#include "text/tokenizer/json_text.h"

#include "core/json.h"

namespace text {

void JsonText::comma() {
  if (!out_.empty() && out_.back() != '{' && out_.back() != '[') out_ += ',';
}

JsonText& JsonText::item() {
  // Only called between items and after '[': a string that ends in a bracket is closed by its
  // quote.
  comma();
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  comma();
  string(name);
  out_ += ':';
  return *this;
}

JsonText& JsonText::string(std::string_view text) { return raw(core::dump(core::Json(text))); }

JsonText& JsonText::number(std::uint64_t value) { return raw(std::to_string(value)); }

void append_special_tokens(JsonText& json, const std::vector<SpecialToken>& tokens) {
  json.key("added_tokens").open('[');
  for (const auto& token : tokens) {
    json.item().open('{');
    json.key("content").string(token.content).key("id").number(token.id);
    json.key("lstrip").raw("false").key("normalized").raw("false").key("rstrip").raw("false");
    json.key("single_word").raw("false").key("special").raw("true");
    json.close('}');
  }
  json.close(']');
}

void append_vocabulary(JsonText& json, const Vocabulary& vocabulary,
    const std::vector<std::string>& names, const std::vector<bool>& outside) {
  // Most names differ in their first bytes, which are compared as one number.
  struct Name {
    std::uint64_t start;
    std::uint32_t id;
  };
  std::vector<Name> sorted;
  sorted.reserve(vocabulary.count());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id) || (!outside.empty() && outside[id])) continue;
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < 8; ++i)
      start = start << 8 | (i < names[id].size() ? static_cast<unsigned char>(names[id][i]) : 0);
    sorted.push_back({start, id});
  }
  std::sort(sorted.begin(), sorted.end(), [&](const Name& a, const Name& b) {
    return a.start != b.start ? a.start < b.start : names[a.id] < names[b.id];
  });
  json.open('{');
  for (const Name& name : sorted) json.key(names[name.id]).number(name.id);
  json.close('}');
}

}  // namespace text
