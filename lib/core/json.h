#pragma once
// JSON documents: bounded parsing, canonical writing.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace core {

/// Keys sorted: its dump is the canonical form that fingerprints hash.
using Json = nlohmann::json;
/// Keys in the order they were put: for what people read.
using OrderedJson = nlohmann::ordered_json;

/// Parses one document nested at most `max_depth` deep. `origin` names it in messages. Throws
/// Error{bad_data}.
Json parse_json(std::string_view text, const std::string& origin, int max_depth = 64);

/// One line without spaces; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);
std::string dump(const OrderedJson& json);
/// Indented by two, for files people open.
std::string dump_pretty(const OrderedJson& json);

/// The member `key` of `object` as T. Throws Error{bad_data} naming origin and key if absent or of
/// another type.
template <class T>
T get(const Json& object, const char* key, const std::string& origin);

}  // namespace core

#include "core/json_get.h"
