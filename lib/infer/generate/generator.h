#pragma once
// Continues prompts with a model and its memories (program sample).

#include "infer/generate/decode_session.h"
#include "infer/generate/generator_beam.h"
#include "infer/generate/generator_draw.h"
#include "infer/generate/generator_prompts.h"
#include "text/tokenizer/special_text.h"

namespace infer {

/// A continuation of a prompt.
struct Sample {
  std::uint64_t prompt = 0;          ///< index of the prompt
  std::int64_t sample = 0;           ///< index within the prompt; for a beam, the rank
  std::string text;                  ///< without the prompt, the end token and the stop string
  std::vector<std::int64_t> tokens;  ///< all generated tokens, including end and stop tokens
  double log_prob = 0;               ///< of the tokens, nats, by the mixture of model and memories
  Finish finish = Finish::length;
  std::vector<CitedToken> cited;      ///< for each token, with options.cite
  std::vector<TakenSpan> spans = {};  ///< all proposed spans
  std::int64_t reused = 0;            ///< tokens of the prompt that were not read again
  /// Tokens that each of Generator::memories() gave: the sum over the tokens of the fraction of
  /// their probability. Empty for beams.
  std::vector<std::pair<std::string, double>> given = {};
  /// Passages before the text: {token, passages} for each search; empty for beams.
  core::OrderedJson retrieved = core::OrderedJson::array();
};

/// Returns {NAME: the fraction of the text that the memory gave}; null for none.
core::OrderedJson memories_json(const Sample& sample);

/// A generated token of a text.
struct GrownToken {
  std::int64_t token = 0;
  double log_prob = 0;    ///< nats, by the mixture of model and memories
  std::size_t begin = 0;  ///< bytes of the text before it
  std::vector<std::pair<std::int64_t, double>> likely = {};  ///< the most probable tokens
};

/// Callbacks of run(). Samples of a prompt, and prompts, arrive in any order.
struct GeneratorCallbacks {
  /// Receives more of a text as soon as no stop string can remove it (not for beams). A piece may
  /// end within a character.
  std::function<void(std::uint64_t prompt, std::int64_t sample, std::string_view piece)> piece = {};
  /// Receives the tokens of the next piece, or of the end of a text, if its Arrival asks for them:
  /// not an end token, and none whose text a stop string has removed.
  std::function<void(std::uint64_t prompt, std::int64_t sample, std::span<const GrownToken>)>
      tokens = {};
  std::function<void(const Sample&)> finished = {};
  std::function<void(const std::string&)> warn = {};        ///< a source was truncated
  std::function<void(std::uint64_t tokens)> progress = {};  ///< total so far; may throw
};

/// A prompt that arrives while others are continued, with its own settings of sampling.
struct Arrival {
  Prompt prompt;
  std::int64_t samples = 1;  ///< see GeneratorOptions
  DrawOptions draw = {};     ///< the prompt's own temperature replaces its temperature
  LogitRulesPtr logits = {};
  std::int64_t likely = -1;  ///< number of most probable tokens of a GrownToken; -1: no tokens
};

/// Callbacks that give run() its prompts.
struct Arrivals {
  /// Returns prompts to continue; called between two steps while `rows` rows are free and no prompt
  /// waits. More texts than that wait for rows. Returns none if there are none now; this ends run()
  /// once no text is left.
  std::function<std::vector<Arrival>(std::int64_t rows)> next;
  /// Returns whether the texts of a prompt are still wanted; called at each step. Others get no
  /// more callbacks, and their rows are free.
  std::function<bool(std::uint64_t prompt)> wanted;
};

/// Generates texts. A text depends only on the model, the options, the seed, the prompt, the index
/// of the sample and, unless the prompt has its own seed, the index of the prompt. It does not
/// depend on other texts of the batch (bit-exactly with TransformerEngine; otherwise up to
/// batch-dependent rounding). Not thread safe.
class Generator {
 public:
  /// Takes ownership of the model. `record`: see make_engine(). `open` holds the memories that an
  /// Answerer with the same model and options has opened; null: the Generator opens its own. Throws
  /// Error{usage} for options that contradict each other or the model, Error{bad_data} for a model
  /// without a tokenizer, Error{unavailable}.
  Generator(model::Loaded loaded, GeneratorOptions options, const MemoryOptions& memory,
      torch::Device device, bool record = true, std::shared_ptr<OpenMemories> open = nullptr);
  ~Generator();

  /// Continues prompts. Indices continue from the last call. An empty prompt means the token that
  /// starts documents; throws Error{usage} if there is none. With translation.source, prompts are
  /// sources: sources of similar length are decoded together, an empty source has an empty
  /// translation, and translations end before a newline. Throws the errors of SourceReader::read,
  /// and Error{bad_data} that names a prompt with settings that do not apply: max_tokens in a
  /// translation, temperature or seed in a search.
  void run(const std::vector<Prompt>& prompts, const GeneratorCallbacks& watch);

  /// Continues prompts as they arrive, with at most options.batch rows. The row of a text that ends
  /// is free for the next one at once. Prompts are read in pieces between the steps of the other
  /// texts, so that these do not wait for a long prompt. Texts are those of run() above. Not for
  /// beam search, translation or retrieved passages; throws Error{bug} for these.
  void run(const Arrivals& arrivals, const GeneratorCallbacks& watch);

  /// Does one step of such a run: admits prompts, reads a piece of them, of a bounded time, and
  /// generates a token for each text. `shared`: others wait for the end of the step. Returns false
  /// if there is no text. Calls of run() must not come between those of step(). If it throws, all
  /// texts are lost.
  bool step(const Arrivals& arrivals, const GeneratorCallbacks& watch, bool shared);

  /// Replaces the memory options. Keeps open datastores and further models open. Memories that
  /// cannot be cited give no citations. If it throws, with the errors of the constructor, the
  /// former memories remain.
  void remember_by(const MemoryOptions& memory);

  const GeneratorOptions& options() const { return options_; }
  /// Returns the number of prompts passed to run() so far, which is the index of the next one.
  std::uint64_t prompts() const { return prompts_; }
  /// Returns the number of generated tokens so far.
  std::uint64_t tokens() const { return tokens_; }
  /// Returns the numbers of datastore lookups so far.
  SearchCounts searches() const { return session_->searches(); }
  /// Returns the number of prompts' tokens that were computed before and not read again.
  std::uint64_t reused() const { return reused_; }
  /// Returns the names of the memories beside the model's own, local and long.
  const std::vector<std::string>& memories() const { return memories_; }
  std::int64_t window() const { return window_; }
  /// Return notes about the window: window_note() if it exceeds the model's positions,
  /// long_prompts_note() if prompts exceeded the window.
  const std::string& window_note() const { return window_note_; }
  std::string long_prompts_note() const { return cut_.note("prompts", window_); }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const text::TokenizerPtr& shared_tokenizer() const { return tokenizer_; }
  /// Returns the tokens before a prompt.
  const std::vector<std::int64_t>& begin() const { return begin_; }
  /// Encodes a prompt. Throws Error{bad_data} for ids that the tokenizer does not have.
  std::vector<std::int64_t> encode(const Prompt& prompt);
  /// Returns a note if a prompt contained the text of a special token as ordinary text; else empty.
  const std::string& special_note() const { return special_note_; }
  /// Returns a line with the engine's deviation from the model's own modules in float32, over the
  /// first tokens of a prompt. Call it before run().
  std::string engine_error(const Prompt& prompt);

 private:
  // A text that is being sampled.
  struct Growing {
    core::Rng rng;
    StopText text;
    text::StreamDecoder decoder;
    Sample sample;
    std::int64_t most;  // in tokens
    DrawOptions draw;
    ChangedLogits logits;
    std::int64_t likely = -1;                 // see Arrival
    std::vector<GrownToken> untold = {};      // tokens not reported yet
    std::size_t reported = 0;                 // bytes of the text already reported
    std::vector<std::int64_t> span = {};      // proposed continuation of its last sampled token
    std::int64_t trust = 1;                   // guesses to read ahead: as many as were right lately
    std::shared_ptr<const Start> start = {};  // of an arrival: owns the stop strings
  };

  // The next token of a text.
  struct NextToken : DrawnToken {
    bool spanned = false;  // whether it continues the text's span
    std::vector<std::pair<std::int64_t, double>> likely = {};
  };
  struct Waiting;
  struct Refilled;
  struct Search;
  void check_translation() const;
  void read_tokenizer();
  void start_engine();
  void learn_from(const std::vector<std::int64_t>& prompt);
  void check_memories(const MemoryPlan& memories) const;
  void set_own(Start& start, const Prompt& prompt) const;
  std::vector<Start> starts_of(const std::vector<Prompt>& prompts, const GeneratorCallbacks& watch);
  void open_rows(const std::vector<Start>& starts);
  text::StreamDecoder decoder_after(const Start& start) const;
  Growing growing(
      const Start& start, std::int64_t sample, const text::StreamDecoder& decoder) const;
  void draw(const std::vector<Start>& starts, std::int64_t first, std::int64_t last,
      const GeneratorCallbacks& watch);
  void step(std::vector<Growing>& texts, Draw& draw, const GeneratorCallbacks& watch);
  std::vector<NextToken> next_tokens(std::vector<Growing>& texts, Draw& draw);
  std::vector<NextToken> drawn_there(
      std::vector<Growing>& texts, const torch::Tensor& log_probs) const;
  std::optional<std::int64_t> grow(
      Growing& text, std::int64_t row, const NextToken& next, const GeneratorCallbacks& watch);
  void drop_unwanted(Refilled& refilled, const Arrivals& arrivals);
  void admit(Refilled& refilled, const Arrivals& arrivals, const GeneratorCallbacks& watch);
  void read(Refilled& refilled, bool shared);
  void tell_tokens(
      Growing& text, std::size_t known, bool ended, const GeneratorCallbacks& watch) const;
  void propose(Growing& text, std::int64_t row, std::int64_t token, double log_prob);
  void search(const std::vector<Start>& starts, const GeneratorCallbacks& watch);
  void cite(const std::vector<Start>& starts, std::vector<Sample>& samples);
  // Returns log p of the tokenizer's tokens; further rows of the head are padding.
  std::span<const float> row_of(const torch::Tensor& rows, std::int64_t row) const;
  std::optional<Finish> ends(
      StopText& text, text::StreamDecoder& decoder, std::int64_t token) const;
  void count(std::size_t tokens, const GeneratorCallbacks& watch);
  void note_passages(std::int64_t row, Sample& sample) const;
  void note_memories(const std::vector<NextToken>& next, std::vector<Growing>& texts) const;

  // Invariants between calls:
  // - session_, stores_, memories_ and citer_ are of the same memories: remember_by() replaces them
  //   together.
  // - The session's rows are the texts of refilled_, in its order, and the prompts that the session
  //   reads are those in its map. With a null refilled_, the session may have rows of an earlier
  //   run, which the next call drops.
  // - prompts_ is the index of the next prompt; no two prompts have had the same.
  model::Loaded loaded_;
  GeneratorOptions options_;
  torch::Device device_;
  text::TokenizerPtr tokenizer_;
  text::TokenizerPtr parsing_special_;  // created on first use
  std::optional<text::SpecialText> special_text_;
  std::string special_note_;
  std::optional<std::uint32_t> end_;  // of the tokenizer
  LogitRulesPtr logits_;              // of options_
  std::set<std::int64_t> ends_;       // end_ and further end tokens of the model folder
  std::vector<std::int64_t> begin_;   // tokens before a prompt
  std::optional<SourceReader> sources_;
  std::int64_t window_ = 0;
  std::string window_note_;
  CutTexts cut_;                           // prompts that exceeded the window
  std::optional<DynamicWeights> learner_;  // of the latest prompt
  std::unique_ptr<Engine> engine_;
  MemoryOptions asked_;  // of remember_by()
  std::optional<Session> session_;
  std::optional<Citer> citer_;
  // Inputs of memory planning, and what is open.
  WindowPlan windows_;
  RetrievePlan retrieve_;
  std::shared_ptr<OpenMemories> open_;
  std::shared_ptr<const Stores> stores_;  // in use
  std::vector<std::string> memories_;     // names
  bool record_;
  std::uint64_t prompts_ = 0, tokens_ = 0, reused_ = 0;
  std::shared_ptr<Refilled> refilled_;  // of step(); null: not begun
  PieceSize read_size_;                 // of prompts
};

}  // namespace infer
