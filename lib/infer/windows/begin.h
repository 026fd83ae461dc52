#pragma once
// What a text begins with for its model: --begin.

#include <cstdint>
#include <optional>
#include <string>

#include "infer/windows/protocol.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// `begin` is auto: the one token that the tokenizer's template puts before a text, nothing chosen
/// where it has none; none: -1; else a token by its text. `tokenizer` may be null; `name` is whose
/// it is, for messages. Throws Error{usage} for a token that there is not.
std::optional<std::int64_t> chosen_beginning(const std::string& begin,
                                             const text::Tokenizer* tokenizer,
                                             const std::string& name);

/// The same for auto under a protocol, or none (null): the token that the protocol has, nothing
/// chosen where documents begin as they are, -1: none. Throws Error{usage} where the protocol has
/// one and the tokenizer has not.
std::optional<std::int64_t> open_beginning(const Protocol* protocol,
                                           const text::Tokenizer* tokenizer,
                                           const std::string& name);

}  // namespace infer
