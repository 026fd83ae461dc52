#pragma once
// What a pickle says, as data. Nothing of it is run: a class is its name, a call is the callee with
// its arguments.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace model {

enum class PickleKind {
  none,
  boolean,
  integer,      ///< of 64 bits
  big_integer,  ///< wider; text: its bytes, little-endian
  real,
  text,
  bytes,
  list,
  tuple,
  set,
  dict,    ///< OrderedDict too
  global,  ///< text: "module name"
  call,    ///< an object: items: callee, arguments
  persistent,
};

/// One value. Values may hold each other in circles, so that who walks them walks along names.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  ///< boolean, integer
  double real = 0;
  std::string text;
  /// list, tuple, set: elements. dict: key, value, key, value, ... call: callee and arguments, then
  /// what was put into it as into a list or a dict. persistent: what it stands for.
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;  ///< call: what was last given to __setstate__

  bool is_global(std::string_view name) const { return kind == PickleKind::global && text == name; }
  /// Of a dict; the last of several; null: not there.
  const PickleValue* find(std::string_view key) const;
  /// Of a call whose callee is this global, or whose class is, the arguments: a tuple; else null.
  const PickleValue* arguments_of(std::string_view global) const;
};

/// A pickle's values, which live as long as it does.
class Pickle {
 public:
  Pickle() = default;
  Pickle(Pickle&&) = default;
  Pickle& operator=(Pickle&&) = default;
  const PickleValue& root() const { return *root_; }
  std::uint64_t end() const { return end_; }  ///< the byte behind it
  /// Calls `visit` with each value, in the order they were made.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto& value : values_) visit(value);
  }

 private:
  friend class Unpickler;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
  std::uint64_t end_ = 0;
};

}  // namespace model
