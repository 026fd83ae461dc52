#pragma once
// Divides long work into pieces of bounded time, so that other work goes on between two of them.

#include <chrono>

#include "core/base.h"

namespace infer {

/// A PieceSize is the number of tokens whose processing takes about a given time. It follows the
/// measured speed.
class PieceSize {
 public:
  /// Times of a piece: while others wait for it, and while none does.
  static constexpr std::chrono::milliseconds kShared{100}, kAlone{250};

  std::int64_t tokens() const { return tokens_; }
  /// Tells how long a piece of `tokens` tokens took, and whether others wait for the next one.
  void took(std::int64_t tokens, std::chrono::duration<double> time, bool shared);

 private:
  static constexpr std::int64_t kFirst = 32, kMost = 4096;
  std::int64_t tokens_ = kFirst;
};

/// A Pace measures the pieces of one piece of work and lets others work between them.
class Pace {
 public:
  enum class Kind { encode, score };
  /// Sizes are kept from one work to the next.
  struct Sizes {
    PieceSize encode, score;
  };
  /// `between` is called after each piece. It returns whether others wait for the next one, and may
  /// throw, which ends the work.
  Pace(Sizes& sizes, std::function<bool()> between) : sizes_(sizes), between_(std::move(between)) {}

  /// Starts a piece; returns the most tokens that it may have, at least 1.
  std::int64_t begin(Kind kind);
  /// Lets others work while this work waits.
  void let_others() { between_(); }
  /// Ends the piece, which had `tokens` tokens.
  void end(std::int64_t tokens);

 private:
  PieceSize& size() { return kind_ == Kind::encode ? sizes_.encode : sizes_.score; }

  Sizes& sizes_;
  std::function<bool()> between_;
  Kind kind_ = Kind::encode;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace infer
