#pragma once
// JSON objects that carry a hash of themselves.

#include <cstdint>
#include <string>

#include "core/json.h"

namespace core {

/// The object with a member "hash" behind its others: XXH3-128, in hexadecimal, of the object
/// without it as dump(Json) writes it.
OrderedJson sealed(OrderedJson object);

/// Throws Error{bad_data} naming `origin` unless "hash" is that of the other members.
void expect_sealed(const Json& object, const std::string& origin);

/// The same of what a file of this program's holds: "format" and "version" are these. `what` it is
/// not, otherwise: "a store's".
void expect_format(const Json& object, const std::string& format, std::uint64_t version,
                   const std::string& what, const std::string& origin);

/// A count that is at most `most`. Throws Error{bad_data} naming origin and key.
std::uint64_t get_at_most(const Json& object, const char* key, std::uint64_t most,
                          const std::string& origin);

}  // namespace core
