#pragma once
// Chat template of a model.

#include <string>

#include "text/chat/chat_template.h"

namespace model {

/// Returns the chat template of the model_folder() of `given`, from text::Chat::in_folder() or a
/// GGUF file's metadata. Throws Error{bad_data} with a hint if there is none, and the errors of
/// model_folder().
text::Chat chat_of(const std::string& given);

/// Returns the template's source; empty: none.
std::string chat_source_of(const std::string& given);

}  // namespace model
