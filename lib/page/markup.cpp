#include "page/markup.h"

#include <algorithm>

#include "core/printable.h"

namespace page {

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = core::printable_length(text);
    switch (text[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += text[0];
        break;
      default:
        out += length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD";
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

std::string script_json(const core::OrderedJson& json) {
  const std::string plain = core::dump(json);
  std::string out;
  out.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace page
