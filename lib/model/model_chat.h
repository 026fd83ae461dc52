#pragma once
// The chat template of a model.

#include <string>

#include "text/chat/chat_template.h"

namespace model {

/// That of the model_folder() of `given`: text::Chat::in_folder(), or of a GGUF file's metadata.
/// Throws Error{bad_data} where there is none, saying what to do, and as model_folder() does.
text::Chat chat_of(const std::string& given);

/// The source of that template; empty: there is none.
std::string chat_source_of(const std::string& given);

}  // namespace model
