#pragma once
// SentencePiece's unigram language model (Kudo 2018, "Subword Regularization"): of all
// segmentations of a text into pieces, it chooses the one with the largest sum of scores, which are
// log-probabilities.
//
// Spaces are marks, as in pieces.h. A character that no piece contains is the unknown token, with a
// score of kUnknown below the lowest score, or the tokens of its bytes; adjacent unknown tokens
// become one. If no piece contains two given characters side by side, every segmentation separates
// them, so each stretch without such a position is encoded separately.
//
// The scores of a tokenizer.model (PieceRules) are added as in sentencepiece: the sum over the text
// so far is rounded to float32 after each piece, and so decides between equal segmentations. Beyond
// 100,000 it starts again from 0.

#include "text/tokenizer/piece_text.h"
#include "text/tokenizer/prefixes.h"

namespace text {

/// Unigram is the tokenizer of kind `unigram`.
class Unigram : public Tokenizer {
 public:
  static constexpr double kUnknown = 10;
  struct Parts {
    std::vector<double> scores;         ///< by id from 0; higher ids are added tokens
    std::vector<SpecialToken> special;  ///< must be in the vocabulary; text never encodes to them
    std::uint32_t unknown = 0;          ///< an id; text never encodes to its piece
    bool byte_fallback = false;
    std::optional<PieceRules> rules = {};  ///< of a tokenizer.model
    TextSteps steps;
    std::optional<PieceDecoder> decoder;  ///< nothing: that of the other steps
    Template around;
  };
  /// Takes the pieces. Throws Error{bad_data} for an unknown token that does not exist, a score
  /// that is not finite, a piece that is not UTF-8, and if some bytes lack a token.
  Unigram(Vocabulary vocabulary, Parts parts);

  TokenizerKind kind() const override { return TokenizerKind::unigram; }
  std::unique_ptr<Encoder> encoder() const override;
  TokenizerPtr parsing_special() const override;
  const char* cut(const char* begin, const char* end) const override;
  void decode_token(std::uint32_t id, bool& line_start, std::string& out) const override;
  std::string json() const override;

  const Parts& parts() const { return parts_; }
  /// Returns true if the two characters, neighbours in a text, may end up in one token.
  bool joins(std::uint32_t left, std::uint32_t right) const;

  /// A Step is the last piece of the best segmentation up to a position in a stretch, and by how
  /// much it is better than any other.
  struct Step {
    double score;
    std::uint32_t from, id;
    float lead;
  };
  /// Appends the tokens of a stretch of text, whose scores it adds to `sum`. `steps` is reusable
  /// memory. Returns false if another sum may lead to other tokens, because the best segmentation
  /// is by less than kClearLead better or its scores not below kFineWord, or if the tokens' scores
  /// are not their pieces'.
  bool encode_stretch(std::string_view text, double& sum, std::vector<Step>& steps,
      std::vector<std::uint32_t>& out) const;
  /// Adds the scores of tokens to a sum.
  double added(double sum, std::span<const std::uint32_t> tokens) const;
  static constexpr float kClearLead = 0.5F;
  /// As in sentencepiece, a larger sum is subtracted from all.
  static constexpr double kLargestSum = 100'000;
  /// Up to a sum of kFineSum, a word with smaller scores than kFineWord does not reach kLargestSum,
  /// and rounding, by at most 1/256 each time, leaves its lead clear.
  static constexpr double kFineSum = 80'000, kFineWord = 16'000;
  /// The bytes at the beginning of a text in which the sum counts. Later it would mostly round.
  static constexpr std::size_t kSummed = std::size_t{1} << 16;

 private:
  double rounded(double sum) const;
  bool is_known(std::uint32_t code_point) const { return known_.count(code_point) > 0; }

  Parts parts_;
  double unknown_score_ = 0;
  PieceText pieces_;
  Prefixes prefixes_;                        // of the pieces that text may encode to
  std::unordered_set<std::uint32_t> known_;  // characters that a piece contains
  std::unordered_set<std::uint64_t> pairs_;  // pairs of characters side by side in a piece
};

}  // namespace text
