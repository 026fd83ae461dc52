#include "model/model_texts.h"

#include "core/error.h"
#include "model/model_path.h"
#include "model/tokenizer_file.h"
#include "text/documents/read_texts.h"

namespace model {

text::TokenizerPtr tokenizer_of(const std::string& path) {
  const auto folder = model_folder(path);
  const auto json = read_tokenizer(folder);
  if (json.empty())
    core::fail(
        core::Code::no_input,
        "{}: has no tokenizer, so it reads shards but not texts; encode the texts with tokenize",
        folder);
  return text::parse_tokenizer(json, tokenizer_path(folder));
}

void read_texts_for(const std::string& path, std::int64_t jobs,
                    std::function<void(const std::string&)> note) {
  text::read_texts({[path] { return tokenizer_of(path); }, "the model's", static_cast<int>(jobs),
                    std::move(note)});
}

}  // namespace model
