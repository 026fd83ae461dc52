#pragma once
// Defines the values of chat templates (Jinja's, which are Python's). Texts are UTF-8 and counted
// in characters. Lists and dicts are immutable; a namespace is mutable.

#include "core/json.h"

namespace text::chat {

/// A Fault ends a rendering; its text is a sentence without the location.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
  template <class First, class... Rest>
  Fault(fmt::format_string<First, Rest...> form, First&& first, Rest&&... rest)
      : runtime_error(fmt::format(form, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
};

struct Value;

struct Undefined {
  std::shared_ptr<const std::string> why;  ///< the message for a use of the value
};
struct None {};
using Text = std::shared_ptr<const std::string>;

struct List {
  /// range: of range(); view: of a dict's items(), keys() or values(), which has no places; lazy: a
  /// generator, which has no length either.
  enum class Form : std::uint8_t { list, tuple, range, view, lazy };
  std::vector<Value> items;
  Form form = Form::list;
  int depth = 1;
  std::size_t extent = 1;  ///< see extent()
};
/// A Dict keeps its keys in insertion order; they differ.
struct Dict {
  std::vector<std::pair<Value, Value>> members;
  int depth = 1;
  std::size_t extent = 1;             ///< see extent()
  std::vector<std::uint32_t> sorted;  ///< the members' places, in the order of key_order()
  /// Return the value of a key, or nullptr.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};
/// Names with their values.
using Names = std::map<std::string, Value, std::less<>>;
/// namespace(): its members may be set.
struct Space {
  Names members;
};
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t at = 0;
};
struct MacroNode;
struct Scope;
struct Function {
  std::string name;
  std::shared_ptr<const Value> self;  ///< the object of a method
  const MacroNode* macro = nullptr;   ///< the template's macro, if it is one
  std::shared_ptr<Scope> home = {};   ///< the scope in which the macro was defined
};

/// A Value is any value of a template.
struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
      std::shared_ptr<const Dict>, std::shared_ptr<Space>, std::shared_ptr<const Loop>,
      std::shared_ptr<const Function>>
      is;

  template <class T> bool holds() const { return std::holds_alternative<T>(is); }
  bool undefined() const { return holds<Undefined>(); }
  bool none() const { return holds<None>(); }
  /// Return the content, or nullptr if the value has another type.
  const std::string* text() const;
  const List* list() const;
  const Dict* dict() const;
  /// Gets an integer or a boolean; returns false for other types.
  bool whole(std::int64_t& number) const;
  /// Gets an integer, a boolean or a float; returns false for other types.
  bool number(double& number) const;
};

constexpr int kDeepest = 128;  ///< nesting limit of lists and dicts

Value undefined(std::string why);
Value of_text(std::string text);
inline Value of_bool(bool value) { return {value}; }
inline Value of_whole(std::int64_t value) { return {value}; }
/// Make values. Throw Fault for values nested too deeply. The last value of equal keys wins. Throw
/// Fault for a key that is a list, a dict or a function.
Value of_list(std::vector<Value> items, List::Form form = List::Form::list);
Value of_dict(std::vector<std::pair<Value, Value>> members);
Value of_json(const core::OrderedJson& json);

/// Throws Fault for an undefined value, saying why it is undefined.
void expect_defined(const Value& value);
bool truth(const Value& value);
/// Returns Python's name of the value's type.
std::string type_name(const Value& value);
/// Returns the output of {{ value }}, or Python's repr() of it. Throws Fault for functions and
/// namespaces, and if the text has much more than `most` bytes.
std::string printed(const Value& value, std::size_t most);
std::string repr(const Value& value, std::size_t most);
/// Returns a == b, which never fails.
bool equal(const Value& a, const Value& b);
/// Compares a and b as < does. Throws Fault for values without an order.
std::partial_ordering order(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
/// Compares keys: a total order in which equal numbers, and no other two keys, are equal. Throws
/// Fault for a value that cannot be a key.
std::weak_ordering key_order(const Value& a, const Value& b);
/// Returns the cost of traversing a value, in steps: its elements, and a sixteenth of the bytes of
/// its texts.
std::size_t extent(const Value& value);

/// A JsonForm holds the parameters of json.dumps as transformers' `tojson` calls it.
struct JsonForm {
  bool ascii = false, sorted = false;
  int indent = -1;
  std::string comma = ", ", colon = ": ";
};
/// Throws Fault for a value that is not JSON, and if the text has much more than `most` bytes.
std::string to_json(const Value& value, const JsonForm& form, std::size_t most);

}  // namespace text::chat
