#pragma once
// Operations on the values of chat templates: operators, attributes, methods, filters, tests.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/template_value.h"

namespace text::chat {

/// A Work counts the steps of a rendering and enforces its limits.
class Work {
 public:
  /// Allows `steps` steps and texts of at most `bytes` bytes.
  Work(std::size_t steps, std::size_t bytes) : steps_(steps), bytes_(bytes) {}
  /// Takes steps from the budget. Throws Fault once it is exhausted.
  void spend(std::size_t steps);
  /// Takes the steps of reading or copying a value.
  void read(const Value& value) { spend(extent(value)); }
  /// Throws Fault if a text would exceed the limit of bytes.
  void expect_room(double bytes) const;
  Value text(std::string text);

 private:
  std::size_t steps_, bytes_;
};

/// Arguments are the positional and the named arguments of a call.
struct Arguments {
  std::vector<Value> plain = {};
  std::vector<std::pair<std::string, Value>> named = {};

  /// Returns the argument at a position or with a name; nullptr if it is absent.
  const Value* find(std::size_t place, std::string_view name) const;
};

/// Return a.name and a[key]; an absent member is undefined. Throw Fault if `of` is undefined.
Value attribute(const Value& of, const std::string& name);
Value item(const Value& of, const Value& key);
/// Returns of[from:to:step]; a null bound is omitted.
Value slice(Work& work, const Value& of, const Value* from, const Value* to, const Value* step);

/// Applies a binary operator: + - * / // % ** ~
Value operate(Work& work, const std::string& sign, const Value& a, const Value& b);
/// Applies a comparison: == != < <= > >= in, not in
bool compare(Work& work, const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& value);

/// Apply a filter, a test or a method by name. Throw Fault for an unsupported name and for
/// arguments that do not fit.
Value apply_filter(Work& work, const std::string& name, const Value& value,
                   const Arguments& arguments);
bool apply_test(Work& work, const std::string& name, const Value& value,
                const Arguments& arguments);
Value call_method(Work& work, const Value& self, const std::string& name,
                  const Arguments& arguments);
Value range(Work& work, const Arguments& arguments);

}  // namespace text::chat
