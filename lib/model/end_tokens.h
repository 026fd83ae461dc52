#pragma once
// The tokens that end a text, as a folder of transformers names them.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace model {

/// "eos_token_id", a number or a list, of the folder's generation_config.json; where that is
/// missing or has none, of `config`, its config.json. Empty: there is none. Throws
/// Error{bad_config} naming the file for another value.
std::vector<std::int64_t> end_tokens(const std::string& folder, const core::Json& config);

}  // namespace model
