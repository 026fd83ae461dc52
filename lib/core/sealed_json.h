#pragma once
// Writes and checks JSON objects that contain their own hash.

#include <cstdint>
#include <string>

#include "core/json.h"

namespace core {

/// Returns the object with a last member "hash": the XXH3-128, in hexadecimal, of the object
/// without this member as dump(Json) writes it.
OrderedJson sealed(OrderedJson object);

/// Throws Error{bad_data}, naming `origin`, unless "hash" matches the other members.
void expect_sealed(const Json& object, const std::string& origin);

/// Checks the object of a file that this program wrote: throws Error{bad_data}, naming `origin`,
/// unless "format" and "version" have the given values. `what` ("a store's") completes the message
/// that says what the file is not.
void expect_format(const Json& object, const std::string& format, std::uint64_t version,
                   const std::string& what, const std::string& origin);

/// Returns a count of at most `most`. Throws Error{bad_data}, naming origin and key.
std::uint64_t get_at_most(const Json& object, const char* key, std::uint64_t most,
                          const std::string& origin);

}  // namespace core
