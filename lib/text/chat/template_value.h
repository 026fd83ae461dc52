#pragma once
// Values of chat templates (Jinja's, which are Python's): texts are UTF-8 and counted in
// characters; lists and dicts never change once they are made, a namespace does.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/json.h"

namespace text::chat {

/// What stops a template: a sentence without the place.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Value;

struct Undefined {
  std::shared_ptr<const std::string> why;  ///< what using it is answered
};
struct None {};
using Text = std::shared_ptr<const std::string>;

struct List {
  enum class Form : std::uint8_t { list, tuple, lazy };  ///< lazy: a generator, which has no length
  std::vector<Value> items;
  Form form = Form::list;
  int depth = 1;
  std::size_t extent = 1;  ///< see extent()
};
/// In the order in which the keys were put. The last of equal keys counts.
struct Dict {
  std::vector<std::pair<std::string, Value>> members;
  int depth = 1;
  std::size_t extent = 1;  ///< see extent()
  const Value* find(std::string_view key) const;
};
/// namespace(): its members may be set.
struct Space {
  std::vector<std::pair<std::string, Value>> members;
  void set(const std::string& name, Value value);
  const Value* find(std::string_view name) const;
};
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t at = 0;
  int depth = 1;
};
struct MacroNode;
struct Scope;
struct Function {
  std::string name;
  std::shared_ptr<const Value> self;  ///< of a method
  const MacroNode* macro = nullptr;   ///< of the template
  std::shared_ptr<Scope> home = {};   ///< what the macro sees
};

struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Space>, std::shared_ptr<const Loop>,
               std::shared_ptr<const Function>>
      is;

  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(is);
  }
  bool undefined() const { return holds<Undefined>(); }
  bool none() const { return holds<None>(); }
  /// nullptr if it is none.
  const std::string* text() const;
  const List* list() const;
  const Dict* dict() const;
  /// An integer or a boolean.
  bool whole(std::int64_t& number) const;
  /// Those and floats.
  bool number(double& number) const;
};

constexpr int kDeepest = 128;  ///< lists and dicts in each other

Value undefined(std::string why);
Value of_text(std::string text);
Value of_bool(bool value);
Value of_whole(std::int64_t value);
/// Throw Fault for values nested too deeply.
Value of_list(std::vector<Value> items, List::Form form = List::Form::list);
Value of_dict(std::vector<std::pair<std::string, Value>> members);
Value of_json(const core::OrderedJson& json);

bool truth(const Value& value);
/// Python's name of its type.
std::string type_name(const Value& value);
/// What {{ value }} prints. Throws Fault for functions and namespaces, and for an undefined value
/// within a list.
std::string printed(const Value& value);
/// ==, which is never an error.
bool equal(const Value& a, const Value& b);
/// a < b. Throws Fault for what has no order.
bool less(const Value& a, const Value& b);
/// What `for` goes through: of a list, a text's characters, a dict's keys. Throws Fault.
std::vector<Value> elements(const Value& value);
/// What it takes to go through all of it: elements, and sixteenths of the bytes of texts.
std::size_t extent(const Value& value);

/// json.dumps as transformers' `tojson` calls it.
struct JsonForm {
  bool ascii = false, sorted = false;
  int indent = -1;
  std::string comma = ", ", colon = ": ";
};
std::string to_json(const Value& value, const JsonForm& form);

}  // namespace text::chat
