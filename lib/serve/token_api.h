#pragma once
// Converts text to token ids and back for clients that count tokens, with the paths and members of
// vLLM's server (lm-evaluation-harness: tokenizer_backend=remote).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace serve {

/// A ServedTokenizer is the tokenizer of the model that is served.
struct ServedTokenizer {
  /// Encodes the texts of special tokens as these tokens, if its kind supports that; not null.
  text::TokenizerPtr tokenizer;
  std::optional<std::int64_t> beginning;  ///< BOS token of texts that are scored without a context
  std::vector<std::int64_t> begin;        ///< tokens before a prompt
  std::int64_t window = 0;                ///< tokens
};

/// Returns {"tokenizer_class", "bos_token", "eos_token", "model_max_length"}; a token that does not
/// exist is null.
std::string tokenizer_info(const ServedTokenizer& served);

/// Answers {"prompt": text, "add_special_tokens"?: whether to put the BOS token first [true]} with
/// {"count", "max_model_len", "tokens"}. Throws HttpError 400, naming the member.
std::string tokenize(const ServedTokenizer& served, const std::string& body);

/// Answers {"tokens": [id, ...]} with {"prompt": text}. Throws HttpError 400 for an id that the
/// tokenizer does not have.
std::string detokenize(const ServedTokenizer& served, const std::string& body);

}  // namespace serve
