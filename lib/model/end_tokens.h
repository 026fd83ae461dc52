#pragma once
// Reads the tokens that end a text from a transformers folder.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace model {

/// Returns "eos_token_id", a number or a list, from the folder's generation_config.json, else from
/// `config`, its config.json. Empty: none. Throws Error{bad_config} that names the file for another
/// value.
std::vector<std::int64_t> end_tokens(const std::string& folder, const core::Json& config);

}  // namespace model
