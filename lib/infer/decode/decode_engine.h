#pragma once
// Interface of decoding engines, which carry a model's State for rows of text that grow a few
// tokens at a time.
// Measures the deviation between two engines.

#include "infer/decode/decode_kernels.h"
#include "nn/arch/model.h"

namespace infer {

/// Tokens to feed to one row in a call; none: the row is unchanged.
struct Feed {
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
  /// Feeds tokens, one Feed for each row. Returns f (N, d_model), g (N, d_key) of all tokens fed,
  /// row by row.
  virtual nn::Hidden feed(const std::vector<Feed>& feeds) = 0;
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
  virtual nn::Head& head() = 0;
};

/// Decodes with the model's own modules, for any architecture and device.
class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(nn::Model& model, torch::Device device) : model_(model), device_(device) {}
  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
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
    std::vector<Feed> feeds;  // of the call after mark()
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

}  // namespace infer
