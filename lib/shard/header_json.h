#pragma once
// Reads and writes the header's JSON: {"dtype", "kind", "vocabulary", "width"}; for an order also
// {"data_fingerprint", "unit", "unit_length"}; for marked tokens also {"marked": true}. Its keys
// are sorted and it has no spaces. It does not include the tokenizer.

#include <string>
#include <string_view>

#include "shard/header.h"

namespace shard {

/// Returns the header as JSON.
std::string header_json(const Header& header);
/// Parses a header. Throws Error{bad_data} for anything that header_json() does not write.
Header header_from_json(std::string_view text, const std::string& name);
/// Throws Error{bad_data} if the fields contradict each other.
void check_header(const Header& header, const std::string& name);

}  // namespace shard
