#pragma once
// Runs a parsed chat template.
// Operations on the values of chat templates: operators, attributes, methods, filters, tests.
// Defines the syntax tree of a chat template.

#include <ctime>

#include "text/chat/template_value.h"

namespace text::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Argument {
  std::string name;  ///< empty: a positional argument
  ExpressionPtr value;
};

struct Expression {
  enum class What : std::uint8_t {
    constant,   ///< constant
    name,       ///< text
    list,       ///< parts
    tuple,      ///< parts
    dict,       ///< parts: key, value, key, value
    attribute,  ///< parts[0].text
    item,       ///< parts[0][parts[1]]
    /// parts[0][parts[1]:parts[2]:parts[3]]; null: omitted
    slice,
    call,  ///< parts[0](arguments)
    /// parts[0] | text(arguments); null parts[0]: the output of a {% filter %} block
    filter,
    test,     ///< parts[0] is text(arguments)
    unary,    ///< text parts[0]: not + -
    binary,   ///< parts[0] text parts[1]
    compare,  ///< parts[0] operators[0] parts[1] operators[1] parts[2] ...
    /// parts[0] if parts[1] else parts[2]; null: omitted
    choice,
  } what;
  int line = 0;
  int depth = 1;  ///< nesting depth of expressions
  std::string text = {};
  Value constant = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<Argument> arguments = {};
  std::vector<std::string> operators = {};
};

struct Statement;
using Block = std::vector<std::unique_ptr<const Statement>>;

/// A Target is what {% set %} and {% for %} assign to: names, or one member of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string member;  ///< member of the namespace names[0]; empty: none
  bool unpacks = false;
};

struct MacroNode {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  ///< null: no default
  Block body;
};

struct Statement {
  enum class What : std::uint8_t {
    text,   ///< text
    print,  ///< value
    if_,    ///< branches, otherwise
    for_,   ///< target in value if condition: body, else otherwise
    /// target = value or, without a value, target = output of body, passed through `filter`
    set,
    /// body in its own scope: {% generation %}, {% with %} (target names = values)
    scope,
    macro,  ///< macro
    /// output of body, passed through `value`, whose innermost operand is null
    filter,
    break_,
    continue_,
  } what;
  int line = 0;
  std::string text = {};
  ExpressionPtr value = {}, condition = {};
  Target target = {};
  std::vector<std::pair<ExpressionPtr, Block>> branches = {};
  std::vector<std::pair<std::string, ExpressionPtr>> with = {};
  Block body = {}, otherwise = {};
  MacroNode macro = {};
};

/// Parses a template. Throws Error{bad_data}, naming origin and line, for a syntax error and for an
/// unsupported part of Jinja, which it names.
Block parse_template(const std::string& source, const std::string& origin);

/// A Work counts the steps of a rendering and enforces its limits. A step pays for 16 bytes that
/// are read or made, so time and memory are bounded together. Callers pay before they work.
class Work {
 public:
  /// Allows `steps` steps and texts of at most `bytes` bytes.
  Work(std::size_t steps, std::size_t bytes) : steps_(steps), bytes_(bytes) {}
  /// Takes steps from the budget. Throws Fault once it is exhausted.
  void spend(std::size_t steps);
  void spend_bytes(std::size_t bytes) { spend(1 + bytes / 16); }
  /// Takes the steps of reading or copying a value.
  void read(const Value& value) { spend(extent(value)); }
  /// Throws Fault if a text would exceed the limit of bytes.
  void expect_room(double bytes) const;
  /// expect_room() as a function, which also takes the steps of making the text.
  std::function<void(double)> room();
  /// Appends to a text, and pays for it.
  void append(std::string& out, std::string_view text);
  /// Make a text from a copy of another, and a list.
  Value text(std::string_view text);
  Value list(std::vector<Value> items, List::Form form = List::Form::list);
  /// Returns the output of {{ value }}, or Python's repr() of it.
  std::string print(const Value& value);
  std::string print_repr(const Value& value);
  Value json(const Value& value, const JsonForm& form);

 private:
  std::size_t steps_, bytes_;
};

/// Steps for a value that is made with a text of its own, such as an undefined value's message.
constexpr std::size_t kStepsOfObject = 16;

/// Returns the values that `for` iterates over: the items of a list, the characters of a text, the
/// keys of a dict. Throws Fault for other values.
std::shared_ptr<const List> elements(Work& work, const Value& value);

/// Arguments are the positional and the named arguments of a call.
struct Arguments {
  std::vector<Value> plain = {};
  std::vector<std::pair<std::string, Value>> named = {};

  /// Returns the argument at a position or with a name; nullptr if it is absent.
  const Value* find(std::size_t place, std::string_view name) const;
};

/// Return a.name and a[key]; an absent member is undefined. Throw Fault if `of` is undefined.
Value attribute(Work& work, const Value& of, const std::string& name);
Value item(Work& work, const Value& of, const Value& key);
/// Returns of[from:to:step]; a null bound is omitted.
Value slice(Work& work, const Value& of, const Value* from, const Value* to, const Value* step);

/// Applies a binary operator: + - * / // % ** ~
Value operate(Work& work, const std::string& sign, const Value& a, const Value& b);
/// Applies a comparison: == != < <= > >= in, not in
bool compare(Work& work, const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& value);

/// Apply a filter, a test or a method by name. Throw Fault for an unsupported name and for
/// arguments that do not fit.
Value apply_filter(
    Work& work, const std::string& name, const Value& value, const Arguments& arguments);
bool apply_test(
    Work& work, const std::string& name, const Value& value, const Arguments& arguments);
Value call_method(
    Work& work, const Value& self, const std::string& name, const Arguments& arguments);
Value range(Work& work, const Arguments& arguments);
/// Returns `form % values` and form.format(...).
Value percent_format(Work& work, const std::string& form, const Value& values);
Value brace_format(Work& work, const std::string& form, const Arguments& arguments);
/// Pads a text to a width in characters with a character, at the left (>), right (<) or both (^).
std::string padded(
    Work& work, std::string text, std::int64_t width, char align, std::string_view fill);

/// Returns the template's output. Throws Error{bad_data}, naming origin and line.
std::string run_template(const Block& block, const Dict& variables, Work work, std::time_t now,
    const std::string& origin);

}  // namespace text::chat
