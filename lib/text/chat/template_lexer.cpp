#include "text/chat/template_lexer.h"

#include <cctype>

#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(const std::string& source, const std::string& origin) : origin_(origin) {
    // Newlines are \n; a trailing newline is not part of the template.
    const auto any_size = [](double) {};
    text_ = replaced(replaced(source, "\r\n", "\n", -1, any_size), "\r", "\n", -1, any_size);
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      const bool any = tag < text_.size();
      const char kind = any ? text_[tag + 1] : ' ';
      take_data(tag, any ? kind : ' ', any ? text_.substr(tag + 2, 1) : "");
      if (!any) break;
      advance(tag + 2);
      if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] == '+' && kind != '{')))
        advance(at_ + 1);
      if (kind == '#') comment();
      else if (kind == '%' && raw()) continue;
      else tag_of(kind);
    }
    put(Token::What::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    core::bad_data("{}:{}: {}", origin_, line_, what);
  }
  void put(Token::What what, std::string text) {
    tokens_.push_back({what, line_, std::move(text)});
  }
  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
        text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  std::size_t next_tag() const {
    for (std::size_t from = at_;;) {
      const auto brace = text_.find('{', from);
      if (brace == text_.npos || brace + 1 >= text_.size()) return text_.size();
      const char kind = text_[brace + 1];
      if (kind == '{' || kind == '%' || kind == '#') return brace;
      from = brace + 1;
    }
  }
  // Emits the text before a tag of this kind, which begins with `mark`.
  void take_data(std::size_t end, char kind, const std::string& mark) {
    std::string data = text_.substr(at_, end - at_);
    if (mark == "-") {
      data = stripped(data, nullptr, false, true);
    } else if ((kind == '%' || kind == '#') && mark != "+") {
      const auto last = data.find_last_not_of(" \t");
      // Strip white space from the start of a line; the end of a previous tag does not start a
      // line.
      const bool line_starts = last == data.npos ? starts_line_ : data[last] == '\n';
      if (line_starts) data.erase(last == data.npos ? 0 : last + 1);
    }
    if (!data.empty()) put(Token::What::data, data);
    advance(end);
  }
  // Continues after the tag that ends at at_; trimming drops a newline.
  void after(bool strips, bool trims) {
    if (strips) {
      const auto rest = std::string_view(text_).substr(at_);
      advance(text_.size() - stripped(rest, nullptr, true, false).size());
    } else if (trims && at_ < text_.size() && text_[at_] == '\n') {
      advance(at_ + 1);
    }
    starts_line_ = at_ > 0 && text_[at_ - 1] == '\n';
  }
  void comment() {
    const auto end = text_.find("#}", at_);
    if (end == text_.npos) fail("a comment does not end: #} is missing");
    const char mark = end > at_ ? text_[end - 1] : ' ';
    advance(end + 2);
    after(mark == '-', mark != '+');
  }
  std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && std::isspace(static_cast<unsigned char>(text_[at])) != 0) ++at;
    return at;
  }
  // Reads a whole {% raw %} block.
  bool raw() {
    std::size_t at = skip_space(at_);
    if (at > text_.size() || text_.compare(at, 3, "raw") != 0) return false;
    at = skip_space(at + 3);
    const bool strips = at < text_.size() && text_[at] == '-';
    if (strips) ++at;
    if (at > text_.size() || text_.compare(at, 2, "%}") != 0) return false;
    advance(at + 2);
    after(strips, false);
    for (std::size_t from = at_;;) {
      const auto tag = text_.find("{%", from);
      if (tag == text_.npos) fail("{% raw %} does not end: {% endraw %} is missing");
      from = tag + 2;
      std::size_t in = from;
      const std::string mark = text_.substr(in, 1);
      if (mark == "-" || mark == "+") ++in;
      in = skip_space(in);
      if (in > text_.size() || text_.compare(in, 6, "endraw") != 0) continue;
      in = skip_space(in + 6);
      const char close = in < text_.size() ? text_[in] : ' ';
      if (close == '-' || close == '+') ++in;
      if (in > text_.size() || text_.compare(in, 2, "%}") != 0) continue;
      take_data(tag, '%', mark);
      advance(in + 2);
      after(close == '-', close != '+');
      return true;
    }
  }

  void tag_of(char kind) {
    const bool block = kind == '%';
    put(block ? Token::What::begin_block : Token::What::begin_print, "");
    const char close = block ? '%' : '}';
    std::vector<char> open;
    for (;;) {
      advance(skip_space(at_));
      if (at_ >= text_.size())
        fail(block ? "a tag does not end: %} is missing" : "a tag does not end: }} is missing");
      const auto closes = [&](std::size_t at) {
        return at + 1 < text_.size() && text_[at] == close && text_[at + 1] == '}';
      };
      const bool marked = (text_[at_] == '-' || (block && text_[at_] == '+')) && closes(at_ + 1);
      if (open.empty() && (marked || closes(at_))) {
        const char mark = marked ? text_[at_] : ' ';
        put(block ? Token::What::end_block : Token::What::end_print, "");
        advance(at_ + (marked ? 3 : 2));
        after(mark == '-', block && mark != '+');
        return;
      }
      token(open);
    }
  }

  void token(std::vector<char>& open) {
    const char c = text_[at_];
    std::size_t end = at_;
    if (begins_name(c)) {
      while (end < text_.size() && in_name(text_[end])) ++end;
      put(Token::What::name, text_.substr(at_, end - at_));
    } else if (is_ascii_digit(c)) {
      end = number();
      return advance(end);
    } else if (c == '"' || c == '\'') {
      return quoted();
    } else {
      static constexpr std::string_view kSigns[] = {"==", "!=", "<=", ">=", "//", "**"};
      end = at_ + 1;
      for (const auto sign : kSigns)
        if (text_.compare(at_, 2, sign) == 0) end = at_ + 2;
      if (end == at_ + 1 &&
          std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
        fail(fmt::format("unexpected {}",
            static_cast<unsigned char>(c) < 0x20 ? "character" : std::string(1, c)));
      if (c == '(' || c == '[' || c == '{') open.push_back(c);
      if (c == ')' || c == ']' || c == '}') {
        const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (open.empty() || open.back() != wanted) fail(fmt::format("unexpected {}", c));
        open.pop_back();
      }
      put(Token::What::sign, text_.substr(at_, end - at_));
    }
    advance(end);
  }

  std::size_t number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < text_.size() &&
             (is_ascii_digit(text_[end]) ||
                 (text_[end] == '_' && end + 1 < text_.size() && is_ascii_digit(text_[end + 1]))))
        ++end;
    };
    digits();
    bool real = false;
    if (end + 1 < text_.size() && text_[end] == '.' && is_ascii_digit(text_[end + 1])) {
      real = true;
      ++end;
      digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_ascii_digit(text_[exponent])) {
        real = true;
        end = exponent;
        digits();
      }
    }
    std::string text = text_.substr(at_, end - at_);
    std::erase(text, '_');
    if (!real && end < text_.size() && begins_name(text_[end]))
      fail("a number that is not decimal is not supported");
    put(real ? Token::What::real : Token::What::whole, std::move(text));
    return end;
  }

  void quoted() {
    const int line = line_;
    std::string text;
    advance(python::read_quoted(text_, at_, text, [this](const char* what) { fail(what); }));
    tokens_.push_back({Token::What::text, line, std::move(text)});
  }

  const std::string& origin_;
  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // at_ is at the start of a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex_template(const std::string& source, const std::string& origin) {
  return Lexer(source, origin).run();
}

}  // namespace text::chat
