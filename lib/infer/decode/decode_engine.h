#pragma once
// Interface of decoding engines, which carry a model's State for rows of text that grow a few
// tokens at a time.
// Measures the deviation between two engines.
// Divides long work into pieces of bounded time, so that other work goes on between two of them.

#include <chrono>

#include "infer/decode/decode_kernels.h"
#include "nn/arch/model.h"

namespace infer {

/// Tokens to feed to one row in a call; none: the row is unchanged.
struct RowInput {
  std::vector<std::int64_t> tokens;
  bool fresh = false;                     ///< resets the row's State before these tokens
  std::vector<std::int64_t> source = {};  ///< encoder input of a row that starts
};

/// A decoding engine. Tensors are on the model's device. Not thread safe.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Replaces all rows by `rows` fresh ones.
  virtual void open(std::int64_t rows) = 0;
  /// Feeds tokens, one RowInput for each row. Returns f (N, d_model), g (N, d_key) of all tokens
  /// fed, row by row.
  virtual nn::Hidden feed(const std::vector<RowInput>& feeds) = 0;
  /// Replaces row i by the former row rows[i]; any number of rows, with repetition.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Drops all but the `keep` newest tokens of every row. Requires carry() == Carry::forget.
  virtual void forget(std::int64_t keep) = 0;
  /// Returns whether mark() and roll_back() are supported.
  virtual bool takes_back() const { return false; }
  /// Announces that tokens of the next feed() may be rolled back.
  virtual void mark() {}
  /// Rolls back the last tokens[i] tokens that one feed() after mark() has fed to row i.
  virtual void roll_back(const std::vector<std::int64_t>& /*tokens*/) {}
  /// Returns whether rows without tokens cost nothing in feed().
  virtual bool idle_rows_are_free() const { return false; }
  /// Keeps keys and values as float16 from the next open() on. Returns false if it cannot.
  virtual bool halve_keys() { return false; }
  virtual nn::Head& head() = 0;
};

/// Decodes with the model's own modules, for any architecture and device.
class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(nn::Model& model, torch::Device device) : model_(model), device_(device) {}
  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<RowInput>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override { model_.architecture->forget(state_, keep); }
  /// mark() copies the State; roll_back() feeds the kept tokens again.
  bool takes_back() const override { return true; }
  void mark() override;
  void roll_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *model_.head; }

 private:
  nn::Model& model_;
  torch::Device device_;
  nn::State state_;
  bool unused_ = true;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> fed_;  // number of tokens fed to each row since open()
  struct Marked {
    nn::State state;
    std::vector<std::int64_t> fed;
    std::vector<RowInput> feeds;  // of the call after mark()
  };
  std::optional<Marked> marked_;
};

/// Deviation of the log-probabilities of every token after each prefix of a text, nats.
struct DecodeError {
  double rms = 0, max = 0;  ///< of the difference
  double divergence = 0;    ///< mean Kullback-Leibler divergence of `other` from `reference`
  double same_best = 0;     ///< fraction of positions with equal best tokens
};

/// Feeds both engines the tokens one by one, as in decoding, and compares them. Overwrites the
/// engines' rows.
DecodeError compare(Engine& reference, Engine& other, const std::vector<std::int64_t>& tokens);

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
