#pragma once
// Words cut into units of characters by byte-pair encoding as subword-nmt does it (Sennrich et al.
// 2016): the last character of a word carries `</w>`, merges are applied by rank, what is in no
// vocabulary is `<unk>`.

#include "text/tokenizer/merges.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

class CharUnits : public Tokenizer {
 public:
  static constexpr std::string_view kEndOfWord = "</w>";

  /// Tokens are UTF-8, those that end a word with `</w>`; token() gives them so. `unknown` and the
  /// special tokens must be in `vocabulary`. Throws Error{bad_data}.
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
