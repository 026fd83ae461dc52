#pragma once
// Texts that grow together, and what the model with its memories expects next in each.

#include <cstdint>
#include <memory>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "infer/generate/prefixed_rows.h"
#include "infer/memory/cite.h"
#include "infer/memory/stream_memory.h"
#include "infer/sources/memory_plan.h"
#include "nn/base/torch.h"

namespace infer {

/// Rows of tokens. A model sees at most `window` tokens. When they are full, one with absolute
/// positions encodes the newer half of them afresh, one that can forget drops the oldest token, a
/// recurrent one just goes on. Each row has memories of its own: every position is remembered once,
/// as it was first encoded, and its label follows with the next call. With passages the prompts are
/// remembered as they read alone, what follows as it reads behind them. Not thread safe.
class Session {
 public:
  /// `window` tokens. Engine and model must outlive it. Models that read beside are decoded too,
  /// with weights of this precision, recorded as make_engine() says. Memories take no part where
  /// several passages are mixed.
  Session(Engine& engine, nn::Model& model, std::int64_t window, const MemoryPlan& memory,
          torch::Device device, Precision precision = Precision::float32,
          const RetrievePlan& retrieve = {}, bool record = true);
  ~Session();

  /// One row for each prompt, none of them empty. Where the architecture forgets, a prompt longer
  /// than the window stands alone. Throws Error{bad_data} for a token outside the vocabulary.
  /// `sources`, if there are any, are what an encoder reads: one for each prompt.
  void start(const std::vector<std::vector<std::int64_t>>& prompts,
             const std::vector<std::vector<std::int64_t>>& sources = {});
  /// log p of every word after each row: (rows, V) float32, contiguous, where the model is.
  torch::Tensor log_probs_there();
  /// The same on the CPU.
  torch::Tensor log_probs() { return log_probs_there().cpu(); }
  /// After log_probs(): what gave row's p(token), whose logarithm is `log_prob`.
  CitedToken cite(const Citer& citer, std::int64_t row, std::int64_t token, double log_prob) const {
    return citer.cite(*memory_, row, token, log_prob);
  }
  /// The same of the stores' entries alone.
  std::vector<StoreShare> store_shares(std::int64_t row, std::int64_t token,
                                       double log_prob) const {
    return memory_->store_shares(row, token, log_prob);
  }
  /// The token that follows in each row. `guesses` of what follows that, a list a row, are read
  /// with it in one call of the model, as far as the window has room, where there is a call to
  /// make: what was read and comes is not read again, what was read in vain is taken back. They
  /// change the speed alone.
  void advance(const std::vector<std::int64_t>& tokens,
               const std::vector<std::vector<std::int64_t>>& guesses = {});
  /// How stores were asked since the Session was made.
  SearchCounts searches() const;
  /// Row i becomes what row rows[i] was; any number of rows, and a row may be taken twice.
  void select(const std::vector<std::int64_t>& rows);

  /// Passages that stand before the texts; null: none are looked for.
  const PrefixedRows* prefixed() const { return prefixed_ ? &*prefixed_ : nullptr; }

  std::int64_t rows() const { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t window() const { return window_; }
  /// Tokens at the beginning of a prompt that the model has forgotten when it has read the prompt.
  std::int64_t forgotten_of(std::int64_t prompt_length) const;
  /// Whether prompts of these lengths can start together.
  bool alone(std::size_t prompt_length) const;

 private:
  struct Text {
    std::vector<std::int64_t> recent;  // the last `window` tokens, where they may be encoded again
    std::int64_t seen = 0;             // tokens that the State holds
    std::int64_t length = 0;
    std::vector<std::int64_t> source;
  };
  // f and g of each row's new tokens: (n, d).
  struct Fed {
    std::vector<torch::Tensor> f, g;
  };
  // What the model has read beyond a text's last token: guesses, and what it made of them.
  struct Ahead {
    std::vector<std::int64_t> tokens;
    torch::Tensor f, g;     // (tokens, d)
    std::int64_t next = 0;  // those before it have come
    std::int64_t left() const { return std::ssize(tokens) - next; }
  };
  Fed feed(const std::vector<std::vector<std::int64_t>>& tokens);
  std::int64_t next_piece(Text& text, std::int64_t left, Feed& feed) const;
  void remember(const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts);
  void learn_weights(const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts);
  void keep_last(const Fed& fed);
  void keep_best();
  bool came(const std::vector<std::int64_t>& tokens);
  void take_back();
  std::int64_t room(const Text& text) const;
  nn::Place last_place() const;

  Engine& engine_;
  nn::Model& model_;
  std::int64_t window_;
  MemoryPlan memory_plan_;
  torch::Device device_;
  nn::Carry carry_;
  std::optional<StreamMemory> memory_;
  std::optional<PrefixedRows> prefixed_;
  std::vector<Text> texts_;
  std::vector<Ahead> ahead_;  // of each text
  torch::Tensor f_, g_;       // (rows, d) of each row's last token
  SearchCounts searches_;     // of memories that were closed
  bool keeps_prompts_ = false;
  std::vector<torch::Tensor> prompt_f_;  // (n, d) of each prompt's tokens, where it keeps them
  struct Beside;
  std::vector<std::unique_ptr<Beside>> beside_;
};

}  // namespace infer
