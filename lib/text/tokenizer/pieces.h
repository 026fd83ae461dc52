#pragma once
// Byte-pair encoding of characters, as a tokenizer.json describes SentencePiece's (Llama 2,
// TinyLlama, Mistral, Gemma). Spaces become a mark, and a prefix may precede the text. A character
// without a token becomes the tokens of its bytes, `<0x00>` to `<0xFF>`, or the unknown token.
//
// The format has no pre-tokenizer, or one that splits before marks. This code splits texts in
// another way without changing any id: if no merge joins two neighbouring characters, no token
// contains both. So each stretch without such a position is encoded separately.

#include "text/tokenizer/piece_text.h"

namespace text {

/// Pieces is the tokenizer of kind `pieces`.
class Pieces : public Tokenizer {
 public:
  /// Metaspace holds the settings of the Metaspace pre-tokenizer.
  struct Metaspace {
    enum class Prepend : std::uint8_t { never, first, always };
    std::string mark;  ///< replacement of a space; empty: no such step
    Prepend prepend = Prepend::never;
    bool split = false;  ///< splits before each mark
  };
  struct Parts {
    std::vector<SpecialToken> special;  ///< must be in the vocabulary
    std::string unknown;  ///< the unknown token; empty: unknown characters are dropped
    std::optional<PieceRules> rules = {};  ///< of a tokenizer.model
    bool byte_fallback = false, fuse_unknown = false, whole_words = false;
    Metaspace metaspace;
    /// Splits numbers from other text. Its kind is Split::Kind::none, or steps with one step of
    /// numbers.
    Split split;
    TextSteps steps;
    std::optional<PieceDecoder> decoder;  ///< nothing: that of the other steps
    Template around;
  };
  /// Takes tokens in UTF-8; token() returns them as they are in the file. Throws Error{bad_data}
  /// for ids and tokens that do not exist, and if some bytes lack a token.
  Pieces(Vocabulary vocabulary, std::vector<Merge> merges, Parts parts);

  TokenizerKind kind() const override { return TokenizerKind::pieces; }
  std::unique_ptr<Encoder> encoder() const override;
  TokenizerPtr parsing_special() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const MergeTable& merges() const { return merges_; }
  const Parts& parts() const { return parts_; }
  /// Appends the initial symbols of a character (its UTF-8, or one invalid byte) before any merge.
  void append_symbols(
      std::string_view character, bool& unknown_before, std::vector<std::uint32_t>& symbols) const;
  /// Returns true if the two characters, neighbours in a text, may end up in one token.
  bool joins(std::uint32_t left, std::uint32_t right) const;

 private:
  bool is_known(std::uint32_t code_point) const;
  std::optional<std::uint32_t> piece_of(std::string_view character) const;

  MergeTable merges_;
  Parts parts_;
  std::uint32_t unknown_ = kNone;
  PieceText pieces_;
  std::vector<bool> silent_;  // by id; of a tokenizer.model: text never becomes this token
  // The pairs of characters that a merge joins. Pairs of ASCII and the mark are in the table,
  // others in the set.
  static constexpr std::uint32_t kNone = 0xFFFFFFFF, kSmall = 129;
  std::uint32_t place(std::uint32_t c) const { return c < 128 ? c : c == mark_ ? 128 : kNone; }
  std::uint32_t mark_ = kNone;
  std::vector<bool> small_;
  std::unordered_set<std::uint64_t> pairs_;
  bool byte_merges_ = false;  // a merge has a byte, so characters without a token join others
};

}  // namespace text
