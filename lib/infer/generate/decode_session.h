#pragma once
// Decoding session: rows of growing texts and the next-token distribution of a model with memories.

#include "infer/generate/prefixed_rows.h"
#include "infer/memory/cite.h"

namespace infer {

/// Rows of tokens. The model attends to at most `window` tokens. When the window is full, a model
/// with absolute positions re-encodes the newer half, a model whose State can forget drops the
/// oldest token, and a recurrent model continues. Each row has separate memories: each position is
/// stored once, with its first encoding, and its label follows with the next call. With retrieved
/// passages, memories store prompts as encoded without a passage and later tokens as encoded after
/// one.
///
/// Rows may come and go: select() leaves rows out, admit() and read() add rows while the others go
/// on. A row gives the same whether it started with the others or was added, bit for bit where the
/// engine and the memories do. Not thread safe.
class Session {
 public:
  /// `window` is in tokens. Engine and model must outlive the session. Further models are decoded
  /// with `precision` and `record`; see make_engine(). Memories are off if several passages are
  /// mixed.
  Session(Engine& engine, nn::Model& model, std::int64_t window, const MemoryPlan& memory,
      torch::Device device, Precision precision = Precision::float32,
      const RetrievePlan& retrieve = {}, bool record = true);
  ~Session();

  /// Starts one row for each prompt; prompts are not empty. Reads once the tokens that all prompts
  /// begin with. If the architecture forgets, a prompt longer than the window must be the only one.
  /// `sources`, if any, are the encoder inputs, one for each prompt. Throws Error{bad_data} for a
  /// token outside the vocabulary.
  void start(const std::vector<std::vector<std::int64_t>>& prompts,
      const std::vector<std::vector<std::int64_t>>& sources = {});
  /// Removes all rows and all admitted prompts.
  void clear();
  /// Admits prompts, not empty, whose tokens read() reads while the rows continue; rows() does not
  /// count them. Reads once the tokens that all of these prompts begin with. A prompt for which
  /// alone() holds must be the only row until it has been read. Returns the first prompt's number;
  /// numbers are consecutive. Not with retrieved passages or sources. Throws Error{bad_data} for a
  /// token outside the vocabulary.
  std::int64_t admit(std::vector<std::vector<std::int64_t>> prompts);
  /// Keeps what was computed of the `most` prompts that were read or used last, for prompts that
  /// begin with the same tokens. Has no effect where idle rows of the engine cost time, with
  /// further models, and where it matters what a call reads.
  void keep(std::int64_t most);
  /// Returns how many tokens of an admitted prompt, which is not a row yet, were computed before.
  std::int64_t reused(std::int64_t number) const;
  /// Reads about `most` tokens of admitted prompts: a quarter of the oldest, the others of the
  /// prompts that need the fewest. If sources have weights that are learned, about as many tokens
  /// of prompts that have been read are learned from. Prompts that are complete become the last
  /// rows. Returns their numbers in the order of the rows, and in `tokens` how many it has read and
  /// learned from. Call it before log_probs().
  std::vector<std::int64_t> read(std::int64_t most, std::int64_t* tokens = nullptr);
  /// Discards an admitted prompt that is not a row yet.
  void discard(std::int64_t number);
  /// Returns log p of every next token: (rows, V) float32, contiguous, on the model's device.
  torch::Tensor log_probs_there();
  /// Returns log_probs_there() on the CPU.
  torch::Tensor log_probs() { return log_probs_there().cpu(); }
  /// Returns the log of the sum of the exponentials of the head's logits of every row, (rows)
  /// float32, on the CPU.
  torch::Tensor log_normalisers();
  /// Returns the memory of the rows, to cite from and for the shares of entries. Call log_probs()
  /// before.
  const StreamMemory& memory() const { return *memory_; }
  /// Appends a token to each row. `guesses` are possible continuations, one list for each row,
  /// which the model reads in the same call if the window has room. Accepted guesses are not read
  /// again; rejected ones are rolled back. Guesses affect speed only.
  void advance(const std::vector<std::int64_t>& tokens,
      const std::vector<std::vector<std::int64_t>>& guesses = {});
  /// Returns the numbers of datastore lookups since construction.
  SearchCounts searches() const;
  /// Replaces row i by the former row rows[i]; any number of rows, also repeated. Admitted prompts
  /// stay.
  void select(const std::vector<std::int64_t>& rows);

  /// Returns the passages before the texts; null: no retrieval.
  const PrefixedRows* prefixed() const { return prefixed_ ? &*prefixed_ : nullptr; }

  std::int64_t rows() const { return rows_; }
  /// Returns the number of initial tokens of a prompt that the model has forgotten after reading
  /// it.
  std::int64_t forgotten_of(std::int64_t prompt_length) const;
  /// Returns whether a prompt of this length must start alone.
  bool alone(std::size_t prompt_length) const;

 private:
  struct Text {
    std::vector<std::int64_t> recent;  // last `window` tokens, kept if they may be re-encoded
    std::int64_t seen = 0;             // tokens in the State
    std::int64_t length = 0;
    std::vector<std::int64_t> source;
  };
  // Outputs and keys of each row's new tokens: (n, d).
  using Fed = std::vector<nn::Hidden>;
  // Tokens read beyond a text's last token: guesses and their outputs.
  struct Ahead {
    std::vector<std::int64_t> tokens;
    nn::Hidden hidden;      // (tokens, d)
    std::int64_t next = 0;  // index of the first unconfirmed guess
    std::int64_t left() const { return std::ssize(tokens) - next; }
  };
  // Admitted prompts in one engine row, which reads their common beginning, or a single prompt.
  struct Reading {
    std::vector<std::int64_t> numbers;
    std::vector<std::vector<std::int64_t>> prompts;
    std::int64_t until = 0, done = 0;     // tokens that the row reads, and has read
    std::vector<nn::Hidden> pieces = {};  // of each call
    std::int64_t reused = 0;              // tokens that were not read again
    // Learns the weights of sources from the tokens of a single prompt that has been read.
    std::shared_ptr<WeightsLearner> learner = {};
    std::int64_t left() const { return until - done; }
    bool whole() const { return until == std::ssize(prompts[0]); }
    bool learned() const { return learner && learner->scored() == std::ssize(prompts[0]) - 1; }
  };
  // A prompt that has been read, and what rows that continue it need.
  struct Kept {
    std::vector<std::int64_t> tokens;
    nn::Hidden hidden;
    std::uint64_t used = 0;
    bool forgotten = false;  // its engine row has lost tokens
  };
  std::unique_ptr<StreamMemory> memory_after(
      const std::vector<std::vector<std::int64_t>>& prompts) const;
  void check_ids(const std::vector<std::vector<std::int64_t>>& texts) const;
  std::int64_t shared_by(const std::vector<std::vector<std::int64_t>>& prompts) const;
  bool reads_in_calls() const;
  void admit(std::vector<std::vector<std::int64_t>> prompts, std::int64_t shared);
  std::vector<std::int64_t> divided(std::int64_t most) const;
  void read_parts(const std::vector<std::int64_t>& parts);
  std::int64_t learn(std::size_t reading, std::int64_t most);
  std::vector<std::int64_t> finish(const std::vector<bool>& complete);
  std::vector<Reading> take_read(const std::vector<bool>& complete);
  std::pair<std::size_t, std::int64_t> continued(const Reading& reading) const;
  std::vector<std::int64_t> keep_read(const std::vector<Reading>& read,
      const std::vector<std::int64_t>& read_rows, std::int64_t first_kept);
  void add_rows(const std::vector<Reading>& read);
  void choose(const std::vector<std::int64_t>& engine_rows);
  Fed feed(const std::vector<std::vector<std::int64_t>>& tokens);
  Fed feed_prompts(const std::vector<std::vector<std::int64_t>>& prompts);
  std::int64_t next_piece(Text& text, std::int64_t left, RowInput& feed) const;
  void remember(StreamMemory& memory, const Fed& fed,
      const std::vector<std::vector<std::int64_t>>& prompts) const;
  EnsembleRows ensemble_rows(std::vector<torch::Tensor> f) const;
  void learn_weights(
      StreamMemory& memory, const Fed& fed, const std::vector<std::vector<std::int64_t>>& prompts);
  void keep_last(const Fed& fed);
  bool came(const std::vector<std::int64_t>& tokens);
  void roll_back();
  std::int64_t room(const Text& text) const;
  nn::TokenPositions last_place() const;

  // Invariants between calls:
  // - texts_ and ahead_ are in the order of the engine's rows: the rows_ rows, then one for each of
  //   readings_, then one for each of kept_. With passages, the engine's rows are those of
  //   prefixed_, and there are neither readings_ nor kept_.
  // - memory_ has one stream and last_ one hidden state for each row. Without rows, memory_ is null
  //   and last_ is empty.
  // - texts_[i].length does not count the guesses in ahead_[i]; texts_[i].seen counts them and is
  //   at most window_.
  // - memory_ stores all positions of a row but its last, whose label is not known yet.
  // - The sessions of ensemble_ have the same rows and the same readings_, with equal numbers.
  Engine& engine_;
  nn::Model& model_;
  std::int64_t window_;
  MemoryPlan memory_plan_;
  torch::Device device_;
  nn::Carry carry_;
  std::unique_ptr<StreamMemory> memory_;  // of the rows; null: no rows
  std::optional<PrefixedRows> prefixed_;
  std::int64_t rows_ = 0;
  std::vector<Text> texts_;        // of the rows, of readings_, of kept_: as the engine's rows
  std::vector<Ahead> ahead_;       // for each text
  std::vector<Reading> readings_;  // oldest first
  std::vector<Kept> kept_;
  std::int64_t most_kept_ = 0;
  std::uint64_t used_ = 0;     // counts uses of kept_
  std::int64_t admitted_ = 0;  // prompts since construction
  nn::Hidden last_;            // (rows, d), of each row's last token
  SearchCounts searches_;      // of closed memories
  bool keeps_prompts_ = false, in_calls_;
  std::vector<torch::Tensor> prompt_f_;  // (n, d) for each prompt's tokens, if keeps_prompts_
  struct Member;
  std::vector<std::unique_ptr<Member>> ensemble_;
};

}  // namespace infer
