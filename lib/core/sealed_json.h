#pragma once
// JSON objects that carry a hash of themselves.

#include <string>

#include "core/json.h"

namespace core {

/// The object with a member "hash" behind its others: XXH3-128, in hexadecimal, of the object without
/// it as dump(Json) writes it.
OrderedJson sealed(OrderedJson object);

/// Throws Error{bad_data} naming `origin` unless "hash" is that of the other members.
void expect_sealed(const Json& object, const std::string& origin);

}  // namespace core
