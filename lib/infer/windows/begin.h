#pragma once
// Opens the tokenizer of a model that reads texts, and selects the BOS token of a text (--bos).

#include <cstdint>
#include <optional>
#include <string>

#include "infer/windows/protocol.h"
#include "model/folder.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// Returns the model's tokenizer. `what` says what it is for, such as "encode texts". Throws
/// Error{bad_data} for a model without a tokenizer, or with more tokens than the model has.
text::TokenizerPtr tokenizer_of(const model::Loaded& loaded, const char* what);

/// Returns the BOS token for `begin`. "auto": the single token that the tokenizer's template puts
/// before a text, nullopt if there is none. "none": -1. Otherwise the token with this text.
/// `tokenizer` may be null; `name` is its owner's, for messages. Throws Error{usage} for an unknown
/// token.
std::optional<std::int64_t> chosen_beginning(const std::string& begin,
                                             const text::Tokenizer* tokenizer,
                                             const std::string& name);

/// Returns the BOS token for "auto" under a protocol, or without one (null): the protocol's token;
/// nullopt if documents begin without change; -1: none. Throws Error{usage} if the protocol
/// requires a token that the tokenizer lacks.
std::optional<std::int64_t> open_beginning(const Protocol* protocol,
                                           const text::Tokenizer* tokenizer,
                                           const std::string& name);

}  // namespace infer
