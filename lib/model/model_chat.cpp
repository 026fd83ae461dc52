#include "model/model_chat.h"

#include "core/error.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/model_path.h"

namespace model {

std::string chat_source_of(const std::string& given) {
  const std::string path = model_folder(given, Beside::left);
  if (is_gguf(path))
    return std::string(GgufFile(path).text("tokenizer.chat_template").value_or(""));
  const auto chat = text::Chat::of_folder(path);
  return chat ? chat->source() : "";
}

text::Chat chat_of(const std::string& given) {
  const std::string path = model_folder(given, Beside::left);
  if (!is_gguf(path)) return text::Chat::in_folder(path);
  const GgufFile file(path);
  const auto source = file.text("tokenizer.chat_template");
  if (!source) core::fail(core::Code::bad_data, "{}: has no tokenizer.chat_template", path);
  return {text::ChatTemplate(std::string(*source), path), gguf_special_tokens(file)};
}

}  // namespace model
