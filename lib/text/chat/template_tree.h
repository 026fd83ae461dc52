#pragma once
// Defines the syntax tree of a chat template.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace text::chat
