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

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace text {

/// SentencepieceAround holds the settings of a model's folder besides its tokenizer.model.
struct SentencepieceAround {
  bool begin = false, end = false;  ///< add the model's bos or eos token to a text
  /// The added tokens by id: their texts, and whether they are special.
  std::map<std::uint32_t, std::pair<std::string, bool>> added = {};
};

/// Returns a tokenizer.json that parse_tokenizer() accepts. Throws Error{bad_data}, naming
/// `origin`, for bytes that are not such a model and for unsupported features: models of words or
/// characters, spaces as suffixes, spaces that are not escaped. Time and memory are bounded by a
/// multiple of the bytes.
std::string sentencepiece_json(std::string_view bytes, const std::string& origin,
                               const SentencepieceAround& around = {});

}  // namespace text
