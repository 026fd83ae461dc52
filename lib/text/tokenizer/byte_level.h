#pragma once
// Byte-level byte-pair encoding; without merges, it encodes plain bytes, or the longest tokens.
// GPT-2's byte alphabet, which writes every byte as a printable character, so that JSON can hold
// tokens of any bytes (Radford et al. 2019, bytes_to_unicode of encoder.py). The bytes 33-126,
// 161-172 and 174-255 are the characters with that number; the other 68 bytes are, in order, the
// characters from U+0100 on.
// Encodes and decodes base64 (RFC 4648).

#include "text/tokenizer/prefixes.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"

namespace text {

/// Appends `bytes` in the alphabet, as UTF-8.
void append_in_alphabet(std::string_view bytes, std::string& out);

/// Returns the bytes that `text` represents; nothing if a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

/// Returns the bytes in the order of their characters, which is the order of GPT-2's first 256 ids.
const std::array<std::uint8_t, 256>& bytes_in_alphabet_order();

/// Encodes bytes with padding.
std::string to_base64(std::string_view bytes);
/// Decodes text with or without padding; returns nothing for an invalid character.
std::optional<std::string> of_base64(std::string_view text);

/// ByteLevel is the tokenizer of kinds `bytes`, `bpe` and `longest`.
class ByteLevel : public Tokenizer {
 public:
  /// Parts holds the optional settings besides vocabulary and merges.
  struct Parts {
    std::vector<SpecialToken> special{};  ///< must be in the vocabulary
    /// A pre-token that is a token is encoded as that token, regardless of the merges
    /// ("ignore_merges").
    bool whole_words = false;
    /// A text is encoded, from its beginning, as the longest token that the rest of it begins with.
    /// This needs a token for every byte, and neither merges, a split, a normalizer nor added
    /// tokens that are found in a text.
    bool longest = false;
    Split split{Split::Kind::gpt2};
    TextSteps steps{};
    Template around{};  ///< see Tokenizer::text_template
  };
  /// Takes tokens as bytes, and merges in order of rank. Throws Error{bad_data} if a merge or a
  /// special token has an id without a token, and unless `parts` hold what `longest` demands.
  ByteLevel(Vocabulary vocabulary, std::vector<Merge> merges, Parts parts);

  TokenizerKind kind() const override;
  std::unique_ptr<Encoder> encoder() const override;
  TokenizerPtr parsing_special() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const MergeTable& merges() const { return merges_; }
  /// Returns the id of a byte, or kNoToken if the vocabulary lacks it; such bytes are dropped.
  std::uint32_t id_of_byte(unsigned char byte) const { return bytes_[byte]; }
  bool whole_words() const { return parts_.whole_words; }
  const Split& split() const { return parts_.split; }
  const TextSteps& steps() const { return parts_.steps; }
  /// Appends the longest tokens of a text between added ones.
  void encode_longest(std::string_view text, std::vector<std::uint32_t>& out) const;
  static constexpr std::uint32_t kNoToken = 0xFFFFFFFF;

  /// Returns the names of all tokens in files, by id: in the byte alphabet, or unchanged for
  /// special and added tokens; empty for a gap.
  std::vector<std::string> file_names() const;

 private:
  std::uint32_t bytes_[256];
  MergeTable merges_;
  Prefixes prefixes_;
  Parts parts_;
};

/// Returns the tokenizer whose ids are the bytes themselves; it has no special token.
TokenizerPtr make_bytes_tokenizer();

}  // namespace text
