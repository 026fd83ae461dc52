#pragma once
// Byte-pair encoding of characters as SentencePiece's is written in a tokenizer.json (Llama 2,
// TinyLlama, Mistral, Gemma): spaces become a mark, a prefix may stand before the text, a character
// that is no token becomes its bytes' tokens `<0x00>` to `<0xFF>` or the unknown token.
//
// There is no pre-tokenizer, or one that splits before marks. Words are found in another way, which
// changes no id: between two characters that no merge joins nothing can be merged, so each stretch
// without such a place is encoded by itself.

#include <unordered_set>

#include "text/tokenizer/merges.h"
#include "text/tokenizer/piece_text.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

class Pieces : public Tokenizer {
 public:
  /// The Metaspace pre-tokenizer.
  struct Metaspace {
    enum class Prepend : std::uint8_t { never, first, always };
    std::string mark;  ///< what a space becomes; empty: there is no such step
    Prepend prepend = Prepend::never;
    bool split = false;  ///< before each mark
  };
  struct Parts {
    std::vector<SpecialToken> special;  ///< must be in the vocabulary
    std::string unknown;                ///< its token; empty: such characters are dropped
    bool byte_fallback = false, fuse_unknown = false, whole_words = false;
    Metaspace metaspace;
    /// Numbers are parted: Split::Kind none, or steps with one step of numbers.
    Split split;
    TextSteps steps;
    Template around;
  };
  /// Tokens are UTF-8; token() gives them as they stand in the file. Throws Error{bad_data} for ids
  /// and tokens that are not there, and where some bytes have no token.
  Pieces(Vocabulary vocabulary, std::vector<Merge> merges, Parts parts);

  TokenizerKind kind() const override { return TokenizerKind::pieces; }
  std::unique_ptr<Encoder> encoder() const override;
  /// See text::parsing_special().
  TokenizerPtr parsing_special() const;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const MergeTable& merges() const { return merges_; }
  const Parts& parts() const { return parts_; }
  /// Appends what a character (its UTF-8, or one byte that is none) is before any merge.
  void append_symbols(std::string_view character, bool& unknown_before,
                      std::vector<std::uint32_t>& symbols) const;
  /// True if the two characters, neighbours in a text, may end up in one token.
  bool joins(std::uint32_t left, std::uint32_t right) const;

 private:
  bool is_known(std::uint32_t code_point) const;

  MergeTable merges_;
  Parts parts_;
  std::uint32_t unknown_ = kNone;
  PieceText pieces_;
  // The pairs of characters that a merge joins: of ASCII and the mark in the table, else in the
  // set.
  static constexpr std::uint32_t kNone = 0xFFFFFFFF, kSmall = 129;
  std::uint32_t mark_ = kNone;
  std::vector<bool> small_;
  std::unordered_set<std::uint64_t> pairs_;
};

}  // namespace text
