#pragma once
// SentencePiece's tokenizer.model: a ModelProto of protobuf, as a tokenizer.json.
//
//   field 1  pieces: {1 text, 2 float score, 3 type: 1 normal, 2 unknown, 3 control, 4 defined by
//            the user, 5 unused, 6 a byte}
//   field 2  {3 model_type: 1 unigram, 2 bpe; 24 spaces behind words; 35 byte_fallback; ...}
//   field 3  {2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
//            5 escape_whitespaces}
//
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace text {

/// What a folder says beside its tokenizer.model.
struct SentencepieceAround {
  bool begin = false, end = false;  ///< a text has the model's bos or eos token around it
  std::map<std::uint32_t, std::pair<std::string, bool>> added = {};  ///< by id: text, is special
};

/// The text of a tokenizer.json that parse_tokenizer() takes. Throws Error{bad_data} naming
/// `origin` for bytes that are no such model, and for what is not supported: models of words or
/// characters, spaces behind words, spaces that stay spaces. Time and memory are bounded by a
/// multiple of the bytes.
std::string sentencepiece_json(std::string_view bytes, const std::string& origin,
                               const SentencepieceAround& around = {});

}  // namespace text
