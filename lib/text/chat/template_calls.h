#pragma once
// What values of chat templates can do: operators, attributes, methods, filters, tests.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/template_value.h"

namespace text::chat {

/// What a template may take, and has taken.
class Work {
 public:
  /// `bytes`: the most of one text.
  Work(std::size_t steps, std::size_t bytes) : steps_(steps), bytes_(bytes) {}
  /// Throws Fault once it is all spent.
  void spend(std::size_t steps);
  /// For what reads or copies a value.
  void read(const Value& value) { spend(extent(value)); }
  /// Throws Fault for more bytes than a text may have.
  void expect_room(double bytes) const;
  Value text(std::string text);

 private:
  std::size_t steps_, bytes_;
};

struct Arguments {
  std::vector<Value> plain = {};
  std::vector<std::pair<std::string, Value>> named = {};

  /// The argument at a place or of a name; nullptr if it is not there.
  const Value* find(std::size_t place, std::string_view name) const;
};

/// a.name, and a[key]; what is not there is undefined. Throw Fault for what is undefined already.
Value attribute(const Value& of, const std::string& name);
Value item(const Value& of, const Value& key);
/// of[from:to:step]; null: left out.
Value slice(Work& work, const Value& of, const Value* from, const Value* to, const Value* step);

/// + - * / // % ** ~
Value operate(Work& work, const std::string& sign, const Value& a, const Value& b);
/// == != < <= > >= in, not in
bool compare(Work& work, const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& value);

/// Throw Fault for a name that is not supported or arguments that do not fit.
Value apply_filter(Work& work, const std::string& name, const Value& value,
                   const Arguments& arguments);
bool apply_test(Work& work, const std::string& name, const Value& value,
                const Arguments& arguments);
Value call_method(Work& work, const Value& self, const std::string& name,
                  const Arguments& arguments);
Value range(Work& work, const Arguments& arguments);

}  // namespace text::chat
