// Parses tokens into statements and expressions, with the precedences of Jinja's parser.

#include "core/units.h"
#include "text/chat/template_lexer.h"
#include "text/chat/template_run.h"

namespace text::chat {
namespace {

using What = Expression::What;
using Kind = Token::What;

constexpr int kDeepestExpression = 200, kDeepestBlock = 60;
// Words that are no names of variables.
constexpr std::string_view kWords[] = {"and", "or", "not", "in", "is", "if", "else"};

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& origin)
      : tokens_(std::move(tokens)), origin_(origin) {}

  Block run() {
    Block block = statements({});
    if (peek().what != Kind::end) unexpected();
    return block;
  }

 private:
  using Owned = std::unique_ptr<Expression>;

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& next() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[noreturn]] void fail(const std::string& what) const {
    core::bad_data("{}:{}: {}", origin_, peek().line, what);
  }
  [[noreturn]] void unexpected() const {
    if (peek().what == Kind::end) fail("the template ends within a block or a tag");
    if (ends_tag()) fail("a tag ends too early");
    fail(fmt::format("unexpected \"{}\"", peek().text.substr(0, 40)));
  }
  bool ends_tag() const { return peek().what == Kind::end_print || peek().what == Kind::end_block; }
  bool is_sign(std::string_view sign) const {
    return peek().what == Kind::sign && peek().text == sign;
  }
  bool is_name(std::string_view name) const {
    return peek().what == Kind::name && peek().text == name;
  }
  bool take_sign(std::string_view sign) { return is_sign(sign) && (next(), true); }
  bool take_name(std::string_view name) { return is_name(name) && (next(), true); }
  void expect_sign(std::string_view sign) {
    if (!take_sign(sign)) fail(fmt::format("\"{}\" is missing", sign));
  }
  void expect(Kind what) {
    if (peek().what != what) unexpected();
    next();
  }
  std::string name() {
    if (peek().what != Kind::name) unexpected();
    return next().text;
  }

  // ---- statements

  core::ScopedValue<int> deeper(int& depth, int most, const char* what) {
    if (depth == most) fail(fmt::format("{} more than {} deep", what, most));
    return {depth, depth + 1};
  }
  core::ScopedValue<int> deeper() { return deeper(nested_, kDeepestExpression, "expressions"); }
  // Within brackets, `if` after an expression belongs to it also in the head of a loop.
  core::ScopedValue<bool> bracketed() { return {no_condition_, false}; }

  // Parses up to a tag with one of these names, and does not consume its name.
  Block statements(const std::set<std::string_view>& ends) {
    const auto guard = deeper(blocks_, kDeepestBlock, "blocks");
    Block block;
    for (;;) {
      const Token& token = peek();
      if (token.what == Kind::end) return block;
      if (token.what == Kind::data) {
        put(block, {Statement::What::text, token.line, token.text});
        next();
      } else if (token.what == Kind::begin_print) {
        const int line = token.line;
        next();
        put(block, {Statement::What::print, line, {}, tuple()});
        expect(Kind::end_print);
      } else {
        expect(Kind::begin_block);
        if (peek().what != Kind::name) unexpected();
        if (ends.count(peek().text) > 0) return block;
        statement(block);
      }
    }
  }
  static void put(Block& block, Statement&& statement) {
    block.push_back(std::make_unique<const Statement>(std::move(statement)));
  }
  void end_block() { expect(Kind::end_block); }
  void close(std::string_view end) {
    if (!take_name(end)) fail(fmt::format("{{% {} %}} is missing", end));
    end_block();
  }
  // Parses the end of a tag, and what follows up to a tag `end`, which it consumes.
  Block body(std::string_view end) {
    end_block();
    Block block = statements({end});
    close(end);
    return block;
  }

  void statement(Block& block) {
    const int line = peek().line;
    const std::string what = next().text;
    Statement made{Statement::What::text, line};
    if (what == "if") {
      if_statement(made);
    } else if (what == "for") {
      for_statement(made);
    } else if (what == "set") {
      set_statement(made);
    } else if (what == "macro") {
      macro_statement(made);
    } else if (what == "generation") {
      made.what = Statement::What::scope;
      made.body = body("endgeneration");
    } else if (what == "with") {
      made.what = Statement::What::scope;
      while (peek().what != Kind::end_block) {
        if (!made.with.empty()) expect_sign(",");
        std::string given = name();
        expect_sign("=");
        made.with.emplace_back(std::move(given), expression());
      }
      made.body = body("endwith");
    } else if (what == "filter") {
      made.what = Statement::What::filter;
      made.value = filters(nullptr, true);
      made.body = body("endfilter");
    } else if (what == "break" || what == "continue") {
      if (loops_ == 0) fail(fmt::format("{{% {} %}} outside of a loop", what));
      made.what = what == "break" ? Statement::What::break_ : Statement::What::continue_;
      end_block();
    } else {
      static const std::set<std::string_view> kKnown = {"block", "call", "extends", "from",
          "import", "include", "do", "trans", "autoescape", "debug"};
      --at_;
      if (kKnown.count(what) > 0) fail(fmt::format("{{% {} %}} is not supported", what));
      fail(fmt::format("unexpected tag {{% {} %}}", what.substr(0, 40)));
    }
    put(block, std::move(made));
  }

  void if_statement(Statement& made) {
    made.what = Statement::What::if_;
    for (;;) {
      auto condition = tuple();
      end_block();
      made.branches.emplace_back(std::move(condition), statements({"elif", "else", "endif"}));
      if (take_name("elif")) continue;
      if (!take_name("else")) return close("endif");
      made.otherwise = body("endif");
      return;
    }
  }

  void for_statement(Statement& made) {
    made.what = Statement::What::for_;
    made.target = target();
    if (!take_name("in")) fail("\"in\" of a loop is missing");
    no_condition_ = true;
    made.value = tuple();
    no_condition_ = false;
    if (take_name("if")) made.condition = expression();
    if (is_name("recursive")) fail("a recursive loop is not supported");
    end_block();
    ++loops_;
    made.body = statements({"endfor", "else"});
    --loops_;
    if (take_name("else")) made.otherwise = body("endfor");
    else close("endfor");
  }

  Target target() {
    Target made;
    const bool bracket = take_sign("(");
    for (;;) {
      made.names.push_back(assigned());
      if (!take_sign(",")) break;
      made.unpacks = true;
      if (is_name("in") || is_sign(")") || is_sign("=")) break;
    }
    if (bracket) expect_sign(")");
    return made;
  }
  std::string assigned() {
    static const std::set<std::string_view> kConstants = {
        "true", "false", "none", "True", "False", "None"};
    if (kConstants.count(peek().text) > 0 && peek().what == Kind::name)
      fail(fmt::format("{} cannot be given a value", peek().text));
    return name();
  }

  void set_statement(Statement& made) {
    made.what = Statement::What::set;
    if (peek(1).what == Kind::sign && peek(1).text == ".") {
      made.target.names = {assigned()};
      next();
      made.target.member = name();
    } else {
      made.target = target();
    }
    if (take_sign("=")) {
      made.value = tuple();
      return end_block();
    }
    if (made.target.unpacks) fail("\"=\" is missing");
    if (is_sign("|")) made.condition = filters(nullptr, false);
    made.body = body("endset");
  }

  void macro_statement(Statement& made) {
    made.what = Statement::What::macro;
    made.macro.name = assigned();
    expect_sign("(");
    while (!take_sign(")")) {
      if (!made.macro.parameters.empty()) expect_sign(",");
      if (take_sign(")")) break;
      std::string parameter = assigned();
      ExpressionPtr value = take_sign("=") ? expression() : nullptr;
      made.macro.parameters.emplace_back(std::move(parameter), std::move(value));
    }
    const core::ScopedValue outside(loops_, 0);
    made.macro.body = body("endmacro");
  }

  // ---- expressions

  // Makes an expression with this text and these parts.
  template <class... Parts> Owned make(What what, int line, std::string text = {}, Parts... parts) {
    auto made = std::make_unique<Expression>();
    made->what = what;
    made->line = line;
    made->text = std::move(text);
    (add(*made, std::move(parts)), ...);
    return made;
  }
  void add(Expression& to, ExpressionPtr part) {
    if (part) deepen(to, *part);
    to.parts.push_back(std::move(part));
  }
  void deepen(Expression& to, const Expression& part) {
    to.depth = std::max(to.depth, part.depth + 1);
    if (to.depth > kDeepestExpression)
      fail(fmt::format("expressions more than {} deep", kDeepestExpression));
  }

  // Parses one expression, or several separated by commas: a tuple.
  ExpressionPtr tuple() {
    const int line = peek().line;
    auto first = no_condition_ ? disjunction() : expression();
    if (!is_sign(",")) return first;
    auto made = make(What::tuple, line, "", std::move(first));
    while (take_sign(",")) {
      if (ends_tag() || peek().what == Kind::end || is_sign(")")) break;
      add(*made, no_condition_ ? disjunction() : expression());
    }
    return made;
  }

  ExpressionPtr expression() {
    const auto guard = deeper();
    const int line = peek().line;
    ExpressionPtr value = disjunction();
    while (take_name("if")) {
      auto made = make(What::choice, line, "", std::move(value));
      add(*made, disjunction());
      add(*made, take_name("else") ? expression() : nullptr);
      value = std::move(made);
    }
    return value;
  }
  // Parses operands with binary operators of one precedence between them.
  template <class Operand>
  ExpressionPtr chain(
      Kind kind, std::initializer_list<std::string_view> operators, const Operand& operand) {
    ExpressionPtr left = operand();
    while (peek().what == kind && core::contains(operators, peek().text)) {
      const int line = peek().line;
      std::string sign = next().text;
      left = make(What::binary, line, std::move(sign), std::move(left), operand());
    }
    return left;
  }
  ExpressionPtr disjunction() {
    return chain(Kind::name, {"or"}, [this] { return conjunction(); });
  }
  ExpressionPtr conjunction() {
    return chain(Kind::name, {"and"}, [this] { return negation(); });
  }
  ExpressionPtr negation() {
    if (!is_name("not")) return comparison();
    const auto guard = deeper();
    const int line = next().line;
    return make(What::unary, line, "not", negation());
  }
  ExpressionPtr comparison() {
    const int line = peek().line;
    auto left = sum();
    Owned made;
    for (;;) {
      std::string sign;
      if (peek().what == Kind::sign) {
        static const std::set<std::string_view> kSigns = {"==", "!=", "<", "<=", ">", ">="};
        if (kSigns.count(peek().text) > 0) sign = next().text;
      } else if (take_name("in")) {
        sign = "in";
      } else if (is_name("not") && peek(1).what == Kind::name && peek(1).text == "in") {
        next(), next();
        sign = "not in";
      }
      if (sign.empty()) break;
      if (!made) made = make(What::compare, line, "", std::move(left));
      made->operators.push_back(std::move(sign));
      add(*made, sum());
    }
    return made ? ExpressionPtr(std::move(made)) : std::move(left);
  }
  ExpressionPtr sum() {
    return chain(Kind::sign, {"+", "-"}, [this] { return joined(); });
  }
  ExpressionPtr joined() {
    return chain(Kind::sign, {"~"}, [this] { return product(); });
  }
  ExpressionPtr product() {
    return chain(Kind::sign, {"*", "/", "//", "%"}, [this] { return power(); });
  }
  ExpressionPtr power() {
    return chain(Kind::sign, {"**"}, [this] { return signed_value(true); });
  }
  ExpressionPtr signed_value(bool with_filters) {
    const auto guard = deeper();
    const int line = peek().line;
    ExpressionPtr value;
    if (is_sign("-") || is_sign("+")) {
      std::string sign = next().text;
      value = make(What::unary, line, std::move(sign), signed_value(false));
    } else {
      value = postfixes(primary());
    }
    return with_filters ? filters(std::move(value), false) : std::move(value);
  }

  ExpressionPtr constant(int line, Value value) {
    auto made = make(What::constant, line);
    made->constant = std::move(value);
    return made;
  }
  ExpressionPtr primary() {
    const Token token = peek();
    if (token.what == Kind::name) {
      next();
      const std::string& word = token.text;
      if (word == "true" || word == "True") return constant(token.line, of_bool(true));
      if (word == "false" || word == "False") return constant(token.line, of_bool(false));
      if (word == "none" || word == "None") return constant(token.line, {None{}});
      if (core::contains(kWords, word)) {
        --at_;
        unexpected();
      }
      return make(What::name, token.line, word);
    }
    if (token.what == Kind::text) {
      std::string text;
      while (peek().what == Kind::text) text += next().text;
      return constant(token.line, of_text(std::move(text)));
    }
    if (token.what == Kind::whole) {
      next();
      const auto number = core::read_number<std::int64_t>(token.text);
      if (!number) fail("the number is too large");
      return constant(token.line, of_whole(*number));
    }
    if (token.what == Kind::real) {
      next();
      return constant(token.line, {std::strtod(token.text.c_str(), nullptr)});
    }
    if (take_sign("(")) {
      const auto guard = bracketed();
      if (take_sign(")")) return make(What::tuple, token.line);
      auto inner = tuple();
      expect_sign(")");
      return inner;
    }
    if (take_sign("[")) return collection(What::list, "]", token.line);
    if (take_sign("{")) return collection(What::dict, "}", token.line);
    unexpected();
  }
  ExpressionPtr collection(What what, std::string_view end, int line) {
    const auto guard = bracketed();
    auto made = make(what, line);
    while (!take_sign(end)) {
      if (!made->parts.empty()) expect_sign(",");
      if (take_sign(end)) break;
      add(*made, expression());
      if (what != What::dict) continue;
      expect_sign(":");
      add(*made, expression());
    }
    return made;
  }

  ExpressionPtr postfixes(ExpressionPtr value) {
    for (;;) {
      const int line = peek().line;
      if (take_sign(".")) {
        value = peek().what == Kind::whole ? make(What::item, line, "", std::move(value), primary())
                                           : make(What::attribute, line, name(), std::move(value));
      } else if (take_sign("[")) {
        value = subscript(std::move(value), line);
      } else if (is_sign("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }
  ExpressionPtr subscript(ExpressionPtr value, int line) {
    const auto guard = bracketed();
    auto made = make(What::slice, line, "", std::move(value));
    int colons = 0;
    ExpressionPtr ends[3];
    for (int i = 0; i < 3; ++i) {
      if (!is_sign(":") && !is_sign("]")) ends[i] = expression();
      if (i == 2 || !take_sign(":")) break;
      ++colons;
    }
    expect_sign("]");
    if (colons == 0) {
      if (!ends[0]) unexpected();
      made->what = What::item;
      add(*made, std::move(ends[0]));
    } else {
      for (auto& end : ends) add(*made, std::move(end));
    }
    return made;
  }
  void arguments(Expression& made) {
    const auto guard = bracketed();
    expect_sign("(");
    bool any = false;
    while (!take_sign(")")) {
      if (any) expect_sign(",");
      if (take_sign(")")) break;
      any = true;
      if (is_sign("*") || is_sign("**")) fail("unpacking of arguments (* and **) is not supported");
      Argument argument;
      if (peek().what == Kind::name && peek(1).what == Kind::sign && peek(1).text == "=") {
        argument.name = name();
        next();
      } else if (!made.arguments.empty() && !made.arguments.back().name.empty()) {
        fail("a positional argument after a keyword argument");
      }
      argument.value = expression();
      deepen(made, *argument.value);
      made.arguments.push_back(std::move(argument));
    }
  }
  ExpressionPtr call(ExpressionPtr value) {
    auto made = make(What::call, peek().line, "", std::move(value));
    arguments(*made);
    return made;
  }

  // `begins`: the first filter has no | before it.
  ExpressionPtr filters(ExpressionPtr value, bool begins) {
    for (;;) {
      const int line = peek().line;
      if (begins || take_sign("|")) {
        begins = false;
        auto made = make(What::filter, line, name(), std::move(value));
        if (is_sign("(")) arguments(*made);
        value = std::move(made);
      } else if (value && take_name("is")) {
        value = test(std::move(value), line);
      } else if (value && is_sign("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }
  ExpressionPtr test(ExpressionPtr value, int line) {
    const bool negated = take_name("not");
    auto made = make(What::test, line, name(), std::move(value));
    const Token& token = peek();
    if (is_sign("(")) {
      arguments(*made);
    } else if (token.what == Kind::text || token.what == Kind::whole || token.what == Kind::real ||
               is_sign("[") || is_sign("{") ||
               (token.what == Kind::name &&
                   (token.text == "is" || !core::contains(kWords, token.text)))) {
      if (is_name("is")) fail("tests cannot follow each other");
      const auto guard = deeper();
      made->arguments.push_back({"", postfixes(primary())});
      deepen(*made, *made->arguments.back().value);
    }
    if (!negated) return made;
    return make(What::unary, line, "not", std::move(made));
  }

  std::vector<Token> tokens_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int blocks_ = 0, nested_ = 0, loops_ = 0;
  bool no_condition_ = false;  // `if` after an expression belongs to the loop
};

}  // namespace

Block parse_template(const std::string& source, const std::string& origin) {
  return Parser(lex_template(source, origin), origin).run();
}

}  // namespace text::chat
