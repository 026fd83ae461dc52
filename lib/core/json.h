#pragma once
// Parses JSON documents within bounds, and writes them in a canonical form.
// Writes and checks JSON objects that contain their own hash.

#include <nlohmann/json.hpp>

#include "core/base.h"

namespace core {

/// Json sorts its keys, so that its dump is the canonical form that fingerprints hash.
using Json = nlohmann::json;
/// OrderedJson keeps the order of insertion, for documents that people read.
using OrderedJson = nlohmann::ordered_json;

/// Parses one document that is nested at most `max_depth` deep. `origin` names it in messages.
/// Throws Error{bad_data}, also for a number beyond double's range.
Json parse_json(std::string_view text, const std::string& origin, int max_depth = 64);
/// Parses a document whose members keep their order, and whose objects have at most 1,000 members
/// each.
OrderedJson parse_ordered_json(
    std::string_view text, const std::string& origin, int max_depth = 64);

/// Returns the keys of the object that is the member `key` of a valid document, each once, in the
/// order in which they first occur; empty if there is no such object.
std::vector<std::string> ordered_keys(std::string_view text, std::string_view key);

/// Writes a document as one line without spaces. Bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);
std::string dump(const OrderedJson& json);
/// Writes a document indented by two spaces, for files that people open.
std::string dump_pretty(const OrderedJson& json);

/// Returns the member `key` of `object` as a T. Throws Error{bad_data}, naming origin and key, if
/// it is absent or has another type.
template <class T> T get(const Json& object, const char* key, const std::string& origin) {
  if (!object.is_object() || !object.contains(key)) bad_data("{}: has no \"{}\"", origin, key);
  const Json& value = object.at(key);
  bool fits = true;
  if constexpr (std::is_same_v<T, bool>) {
    fits = value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    fits = value.is_number_integer() && (std::is_signed_v<T> || value.is_number_unsigned());
  } else if constexpr (std::is_floating_point_v<T>) {
    fits = value.is_number();
  }
  try {
    if (fits) return value.get<T>();
  } catch (const Json::exception&) { fits = false; }
  bad_data("{}: \"{}\" has the wrong type", origin, key);
}

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

/// Returns a count from `least` to `most`. Throws Error{bad_data}, naming origin and key.
std::uint64_t get_at_most(const Json& object, const char* key, std::uint64_t most,
    const std::string& origin, std::uint64_t least = 0);

}  // namespace core
