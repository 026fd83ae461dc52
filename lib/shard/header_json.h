#pragma once
// The header's JSON: {"dtype", "kind", "vocabulary", "width"}, of an order also
// {"data_fingerprint", "unit", "unit_length"}, of marked tokens also {"marked": true}; keys sorted, no spaces. The tokenizer is not in it.

#include <string>
#include <string_view>

#include "shard/header.h"

namespace shard {

std::string header_json(const Header& header);
/// Throws Error{bad_data} for anything else than header_json() writes.
Header header_from_json(std::string_view text, const std::string& name);
/// Throws Error{bad_data} if the fields contradict each other.
void check_header(const Header& header, const std::string& name);

}  // namespace shard
