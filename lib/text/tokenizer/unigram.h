#pragma once
// SentencePiece's unigram language model (Kudo 2018, "Subword Regularization"): of all ways to cut
// a text into pieces the one whose scores, logarithms of probabilities, have the largest sum.
//
// Spaces are a mark, as in pieces.h. A character that no piece holds is the unknown token, of a
// score of kUnknown below the least, or the tokens of its bytes; unknown ones that follow each
// other are one. Between two characters that stand beside each other in no piece a text is cut
// whatever its sum, so each stretch without such a place is encoded by itself.

#include <unordered_set>
#include <vector>

#include "text/tokenizer/piece_text.h"
#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/tokenizer.h"

namespace text {

class Unigram : public Tokenizer {
 public:
  static constexpr double kUnknown = 10;
  struct Parts {
    std::vector<double> scores;         ///< of the ids from 0 on; others are added tokens
    std::vector<SpecialToken> special;  ///< must be in the vocabulary; no text gives them
    std::uint32_t unknown = 0;          ///< an id; no text gives its piece
    bool byte_fallback = false;
    TextSteps steps;
    Template around;
  };
  /// Throws Error{bad_data} for an unknown token that is not there, a score that is not finite, a
  /// piece that is not UTF-8, and where some bytes have no token.
  Unigram(Vocabulary vocabulary, Parts parts);

  TokenizerKind kind() const override { return TokenizerKind::unigram; }
  std::unique_ptr<Encoder> encoder() const override;
  /// See text::parsing_special().
  TokenizerPtr parsing_special() const;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const Parts& parts() const { return parts_; }
  /// True if the two characters, neighbours in a text, may end up in one token.
  bool joins(std::uint32_t left, std::uint32_t right) const;

  /// What the best way to a place in a stretch ends with.
  struct Step {
    double score;
    std::uint32_t from, id;
  };
  /// Appends the tokens of a stretch of text. `steps`: memory to work in.
  void encode_stretch(std::string_view text, std::vector<Step>& steps,
                      std::vector<std::uint32_t>& out) const;

 private:
  bool is_known(std::uint32_t code_point) const;

  Parts parts_;
  double unknown_score_ = 0;
  PieceText pieces_;
  std::vector<std::uint32_t> sorted_;  // ids of the pieces that a text may give, by their bytes
  std::uint32_t starts_[257];          // in sorted_, of each first byte
  std::unordered_set<std::uint32_t> known_;  // characters that are a piece
  std::unordered_set<std::uint64_t> pairs_;  // characters that stand beside each other in one
};

}  // namespace text
