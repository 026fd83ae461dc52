#include "infer/windows/begin.h"

#include "core/error.h"

namespace infer {

std::optional<std::int64_t> chosen_beginning(const std::string& begin,
                                             const text::Tokenizer* tokenizer,
                                             const std::string& name) {
  if (begin == "none") return -1;
  if (begin == "auto") {
    if (tokenizer == nullptr || tokenizer->text_template().begin.size() != 1) return std::nullopt;
    return tokenizer->text_template().begin[0];
  }
  if (tokenizer == nullptr)
    core::fail(core::Code::usage, "--begin {}: {} has no tokenizer", begin, name);
  const auto id = tokenizer->id_of(begin);
  if (!id)
    core::fail(core::Code::usage, "--begin {}: no token of the tokenizer of {}; give auto or none",
               begin, name);
  return *id;
}

}  // namespace infer
