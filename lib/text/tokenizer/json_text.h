#pragma once
// Writes the canonical JSON of a tokenizer straight away: a document tree of 100,000 nodes takes
// ten times as long. The caller puts keys in sorted order; the bytes are those of core::dump.

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace text {

class JsonText {
 public:
  /// Opens an object '{' or a list '['.
  JsonText& open(char bracket);
  JsonText& close(char bracket);
  JsonText& key(std::string_view name);
  /// Before each item of a list.
  JsonText& item();
  /// `text` is UTF-8.
  JsonText& string(std::string_view text);
  /// A value that is JSON already.
  JsonText& raw(std::string_view json);
  JsonText& number(std::uint64_t value);
  std::string text() && { return std::move(out_); }

 private:
  void comma();
  std::string out_;
};

/// "added_tokens": [...]
void append_special_tokens(JsonText& json, const std::vector<SpecialToken>& tokens);
/// {name: id}, sorted by name; names[id] is the name of a token in the file. Without those of
/// `outside`, if it is not empty.
void append_vocabulary(JsonText& json, const Vocabulary& vocabulary,
                       const std::vector<std::string>& names,
                       const std::vector<bool>& outside = {});

}  // namespace text
