#pragma once
// Parses JSON documents within bounds, and writes them in a canonical form.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

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
OrderedJson parse_ordered_json(std::string_view text, const std::string& origin,
                               int max_depth = 64);

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
template <class T>
T get(const Json& object, const char* key, const std::string& origin);

}  // namespace core

#include "core/json_get.h"
