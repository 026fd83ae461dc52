#pragma once
// Access to pickled objects: the class by name and the attributes; includes torch modules.

#include <map>
#include <string>

#include "model/pickle/pickle_value.h"

namespace model {

/// Returns "module name" of the object's class; empty if the value is no object. torch's stream
/// format stores the source of a module's class beside its name.
std::string class_of(const PickleValue& value);

/// Returns the dict of __dict__; null if the value is no object or has none.
const PickleValue* attributes_of(const PickleValue& value);

/// Returns a module's parameters and buffers by their names in state_dict(), without those that are
/// None. Throws Error{bad_data} for modules that contain one another in cycles, or whose shared
/// parts produce an implausible number of names. `origin` names the file.
std::map<std::string, const PickleValue*> weights_of_module(const PickleValue& module,
                                                            const std::string& origin);

/// Returns the submodule with a name like "layers.0.attn"; null: absent.
const PickleValue* submodule(const PickleValue& module, const std::string& name);

}  // namespace model
