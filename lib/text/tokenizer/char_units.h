#pragma once
// Splits words into units of characters by byte-pair encoding as subword-nmt does (Sennrich et al.
// 2016). The last character of a word carries `</w>`; merges are applied in order of rank; a unit
// that is not in the vocabulary is `<unk>`.

#include "text/tokenizer/tokenizer.h"

namespace text {

/// CharUnits is the tokenizer of kind `units`.
class CharUnits : public Tokenizer {
 public:
  static constexpr std::string_view kEndOfWord = "</w>";

  /// Takes tokens in UTF-8; those that end a word carry `</w>`, and token() returns them in this
  /// form. `unknown` and the special tokens must be in `vocabulary`. Throws Error{bad_data}.
  CharUnits(Vocabulary vocabulary, std::vector<Merge> merges, std::vector<SpecialToken> special,
      std::string unknown);

  TokenizerKind kind() const override { return TokenizerKind::units; }
  std::unique_ptr<Encoder> encoder() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const MergeTable& merges() const { return merges_; }
  std::uint32_t unknown() const { return unknown_; }

 private:
  MergeTable merges_;
  std::string unknown_name_;
  std::uint32_t unknown_;
};

}  // namespace text
