#pragma once
// Converts SentencePiece's tokenizer.model, a ModelProto of protobuf, to a tokenizer.json.
//
//   field 1  pieces: {1 text, 2 float score, 3 type: 1 normal, 2 unknown, 3 control, 4 user
//            defined, 5 unused, 6 a byte}
//   field 2  {3 model_type: 1 unigram, 2 bpe; 24 treat_whitespace_as_suffix; 35 byte_fallback; ...}
//   field 3  {2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
//            5 escape_whitespaces}
//
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
// Derives the merges of SentencePiece's byte-pair encoding from the scores of its tokens.

#include "core/json.h"
#include "text/tokenizer/special_text.h"

namespace text {

/// SentencepieceAround holds the settings of a model's folder besides its tokenizer.model.
struct SentencepieceAround {
  bool begin = false, end = false;  ///< add the model's bos or eos token to a text
  /// The tokenizer is transformers' LlamaTokenizer (of transformers 5), which takes only the pieces
  /// of a BPE: no rules, and merges by the pieces' ids.
  bool llama = false;
  /// Each piece of a text between added tokens gets the prefix, else only the text.
  bool legacy = true;
  bool prefix = true;  ///< of a LlamaTokenizer: a text gets the prefix
  std::map<std::uint32_t, AddedToken> added = {};
  /// Of a LlamaTokenizer: the contents of tokens with a role, such as eos_token, which are special;
  /// and further special tokens, instead of the model's control and user-defined pieces.
  std::unordered_set<std::string> roles = {};
  std::optional<std::vector<AddedToken>> list = {};
};

/// Returns a tokenizer.json that parse_tokenizer() accepts. Its ids are those of sentencepiece, or
/// with `llama` those of transformers. Throws Error{bad_data}, naming
/// `origin`, for bytes that are not such a model and for unsupported features: models of words or
/// characters, spaces as suffixes, spaces that are not escaped. Time and memory are bounded by a
/// multiple of the bytes.
std::string sentencepiece_json(
    std::string_view bytes, const std::string& origin, const SentencepieceAround& around = {});

/// Returns the decoder of its tokenizer.json. `prefix`: a text begins with a space that is dropped.
core::OrderedJson pieces_decoder(bool prefix);

/// The longest token in bytes. Each position in a token may be a merge, so the limit bounds time
/// and memory.
inline constexpr std::size_t kLongestScored = 256;
/// There are at most kPairsOfToken * tokens + kMorePairs pairs, so memory is linear in the tokens.
/// Tokens of at most 16 characters, which SentencePiece trains by default, have no more; in models
/// of languages a token has two.
inline constexpr std::size_t kPairsOfToken = 16, kMorePairs = 65536;

/// Returns the pairs of tokens whose concatenation is a token, ordered by that token's score, best
/// first; pairs of one token, by the length of the first. Only tokens with `merges` are split into
/// pairs; any token may be a part. `origin` names the file. Throws Error{bad_data} for a score that
/// is not a number, a token longer than kLongestScored and too many pairs. sentencepiece begins
/// with characters, tokens or not: with `unmerged`, the symbols that it never merges, a token that
/// it makes of such a character also throws.
std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin,
    const std::unordered_set<std::string_view>* unmerged = nullptr);

}  // namespace text
