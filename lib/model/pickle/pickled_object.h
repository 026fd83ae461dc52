#pragma once
// Objects in a pickle: their class by name and their attributes; modules of torch among them.

#include <map>
#include <string>

#include "model/pickle/pickle_value.h"

namespace model {

/// "module name" of the object's class; empty for what is no object. torch's streams have the
/// source of a module's class beside its name.
std::string class_of(const PickleValue& value);

/// What __dict__ was: a dict; null for what is no object, or has none.
const PickleValue* attributes_of(const PickleValue& value);

/// A module's parameters and buffers by the names of its state_dict(); those that are None are left
/// out. Throws Error{bad_data} for modules that hold each other in circles, or whose shared parts
/// make more names than any model has. `origin` names the file.
std::map<std::string, const PickleValue*> weights_of_module(const PickleValue& module,
                                                            const std::string& origin);

/// The module that `module` has under a name like "layers.0.attn"; null: it has none.
const PickleValue* submodule(const PickleValue& module, const std::string& name);

}  // namespace model
