#pragma once
// Content of a pickle as data. Nothing is executed: a class is represented by its name, a call by
// its callee and arguments.
// Decodes NumPy scalars in a pickle, which trainers store among their settings.
// Access to pickled objects: the class by name and the attributes; includes torch modules.

#include "core/base.h"

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
  dict,    ///< also OrderedDict
  global,  ///< text: "module name"
  call,    ///< an object: items: callee, arguments
  persistent,
};

/// A value. Values may contain one another in cycles, so traversals must follow names.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  ///< boolean, integer
  double real = 0;
  std::string text;
  /// list, tuple, set: elements. dict: key, value, key, value, ... call: callee and arguments, then
  /// items added to the object as to a list or a dict. persistent: the persistent id.
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;  ///< call: last argument of __setstate__

  bool is_global(std::string_view name) const { return kind == PickleKind::global && text == name; }
  /// Returns the value of a dict's key, the last of several; null: absent.
  const PickleValue* find(std::string_view key) const;
  /// Returns the argument tuple of a call whose callee, or whose class, is this global; else null.
  const PickleValue* arguments_of(std::string_view global) const;
};

/// The values of a pickle, owned by it.
class Pickle {
 public:
  Pickle() = default;
  Pickle(Pickle&&) = default;
  Pickle& operator=(Pickle&&) = default;
  const PickleValue& root() const { return *root_; }
  std::uint64_t end() const { return end_; }  ///< offset after the pickle
  /// Calls `visit` with each value in the order of creation.
  template <class Visit> void each(const Visit& visit) const {
    for (const auto& value : values_) visit(value);
  }

 private:
  friend class Unpickler;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
  std::uint64_t end_ = 0;
};

/// Returns the value of scalar(dtype, bytes) for the little-endian types i1 to i8, u1 to u8, b1, f4
/// and f8, as an integer, boolean or real; nullopt for any other call.
std::optional<PickleValue> numpy_scalar(const PickleValue& callee, const PickleValue& arguments);

/// Returns "module name" of the object's class; empty if the value is no object. torch's stream
/// format stores the source of a module's class beside its name.
std::string class_of(const PickleValue& value);

/// Returns the dict of __dict__; null if the value is no object or has none.
const PickleValue* attributes_of(const PickleValue& value);

/// Returns a module's parameters and buffers by their names in state_dict(), without those that are
/// None. Throws Error{bad_data} for modules that contain one another in cycles, or whose shared
/// parts produce an implausible number of names. `origin` names the file.
std::map<std::string, const PickleValue*> weights_of_module(
    const PickleValue& module, const std::string& origin);

/// Returns the submodule with a name like "layers.0.attn"; null: absent.
const PickleValue* submodule(const PickleValue& module, const std::string& name);

}  // namespace model
