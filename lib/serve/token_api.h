#pragma once
// The tokens of a client's texts: of prompts, of conversations, and of clients that count them,
// with the paths and members of vLLM's and llama.cpp's servers (lm-evaluation-harness:
// tokenizer_backend=remote).

#include "serve/completion.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace serve {

/// A ServedTokenizer is the tokenizer of the model that is served. Const calls are thread safe.
struct ServedTokenizer {
  text::TokenizerPtr tokenizer;  ///< special tokens in a text are ordinary text
  /// Encodes the texts of special tokens as these tokens; the same as `tokenizer` if its kind does
  /// not support that.
  text::TokenizerPtr parsing;
  std::optional<std::int64_t> beginning = {};  ///< BOS token of texts that are scored alone
  std::vector<std::int64_t> begin = {};        ///< tokens before a prompt
  std::vector<std::int64_t> empty = {};        ///< tokens of an empty prompt; empty: there are none
  std::int64_t window = 0;                     ///< tokens
  std::shared_ptr<const text::Chat> chat = {};  ///< null: no chat template
  std::string system = {};                      ///< message before conversations that have none
  std::string folder = {};                      ///< of the model, which clients do not see

  /// Encodes a text. `begins`: puts the BOS token first.
  std::vector<std::int64_t> encode(std::string_view text, bool begins, bool parses) const;
};

/// Gives each prompt of a request its tokens, those of the conversation to a chat, and frees texts
/// that are not needed any more. Throws HttpError 400, naming the member, for a conversation that
/// the template refuses, an id that the tokenizer does not have, a prompt that is longer than the
/// window unless it is only scored, and more than `most_scored` tokens to score.
void encode_prompts(
    CompletionRequest& request, const ServedTokenizer& served, std::int64_t most_scored);

/// Returns {"tokenizer_class", "bos_token", "eos_token", "model_max_length"}; a token that does not
/// exist is null.
std::string tokenizer_info(const ServedTokenizer& served);

/// Answers {"prompt": text} or {"messages": [...]} (vLLM), or {"content": text} (llama.cpp), with
/// {"count", "max_model_len", "tokens"}. Members: "add_special_tokens", in llama.cpp's form
/// "add_special", puts the BOS token first [true for a prompt, else false]; "parse_special" encodes
/// the texts of special tokens as these tokens [true]. Throws HttpError 400, naming the member.
std::string tokenize(const ServedTokenizer& served, const std::string& body);

/// Answers {"tokens": [id, ...]} with the text as "prompt" (vLLM) and "content" (llama.cpp). Throws
/// HttpError 400 for an id that the tokenizer does not have, and for a text of more than 16 MiB.
std::string detokenize(const ServedTokenizer& served, const std::string& body);

}  // namespace serve
