#include "infer/windows/begin.h"

#include "core/error.h"
#include "text/formats/tokenizer_json.h"

namespace infer {

text::TokenizerPtr tokenizer_of(const model::Loaded& loaded, const char* what) {
  using core::Code;
  if (loaded.tokenizer.empty())
    core::fail(Code::bad_data, "{}: has no tokenizer to {} with; give --tokenizer", loaded.folder,
               what);
  auto tokenizer = text::parse_tokenizer(loaded.tokenizer, loaded.folder + ": tokenizer");
  if (static_cast<std::int64_t>(tokenizer->size()) > loaded.model->vocabulary)
    core::fail(Code::bad_data, "{}: the tokenizer has {} tokens, but the model has {}",
               loaded.folder, tokenizer->size(), loaded.model->vocabulary);
  return tokenizer;
}

std::optional<std::int64_t> chosen_beginning(const std::string& begin,
                                             const text::Tokenizer* tokenizer,
                                             const std::string& name) {
  if (begin == "none") return -1;
  if (begin == "auto") {
    if (tokenizer == nullptr || tokenizer->text_template().begin.size() != 1) return std::nullopt;
    return tokenizer->text_template().begin[0];
  }
  if (tokenizer == nullptr)
    core::fail(core::Code::usage, "--bos {}: {} has no tokenizer", begin, name);
  const auto id = tokenizer->id_of(begin);
  if (!id)
    core::fail(core::Code::usage,
               "--bos {}: not a token of the tokenizer of {}; give auto, none or a token", begin,
               name);
  return *id;
}

std::optional<std::int64_t> open_beginning(const Protocol* protocol,
                                           const text::Tokenizer* tokenizer,
                                           const std::string& name) {
  if (protocol == nullptr) return chosen_beginning("auto", tokenizer, name);
  std::optional<std::int64_t> chosen;
  if (protocol->beginning != Beginning::mark) chosen = chosen_beginning("auto", tokenizer, name);
  if (chosen) return chosen;
  if (protocol->beginning == Beginning::template_only) return -1;
  if (tokenizer != nullptr) chosen = tokenizer->end_of_document();
  if (!chosen && tokenizer != nullptr && tokenizer->counts_newlines())
    chosen = tokenizer->id_of("<eos>");
  if (!chosen)
    core::fail(
        core::Code::usage,
        "--protocol {}: the tokenizer of {} has no end-of-document token to use as BOS; give "
        "--bos",
        protocol->name, name);
  return chosen;
}

}  // namespace infer
