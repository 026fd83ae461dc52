#pragma once
// Scores texts, continuations and choices with a model and its memories (program score).
// Splits a joint encoding into context and continuation tokens.

#include "infer/answers/passage_scorer.h"
#include "infer/loops/make_engine.h"
#include "text/tokenizer/special_text.h"

namespace infer {

struct AnswererOptions {
  std::string model, adapter, tokenizer;
  std::string boundary = "count";  ///< between context and continuation: count or prefix; see
                                   ///< Boundary
  std::string domain_context;      ///< second context for scoring choices; empty: none
  std::string verbalizers;         ///< file {choice: [text, ...]} with the synonyms of choices
  bool special = false;            ///< parses the texts of special tokens
  bool chat = false;               ///< contexts may be conversations, formatted by the model's chat
                                   ///< template
  std::string system;              ///< message before each conversation
  bool cite = false;
  std::int64_t cite_k = 3;
  std::int64_t likely = 0;  ///< number of tokens in the details of score_tokens(); no flag
  WindowOptions windows;
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  MemoryOptions memory;
  ScoringOptions compute;
  DynamicOptions dynamic;  ///< of texts; no flag of fields()
  void fields(core::FieldList& f);
};

/// Answers requests. Not thread safe.
class Answerer {
 public:
  /// Loads the model and opens the datastores. Throws Error{usage} for a model that reads pairs and
  /// for contradictory options; Error{bad_data} for a model without a tokenizer; and the errors of
  /// model::load(), plan_windows() and plan_memory().
  explicit Answerer(const AnswererOptions& options);
  /// Uses a loaded model. If load_to_decode() packed its weights, scores are of the packed ones.
  Answerer(const AnswererOptions& options, model::Loaded loaded);

  /// Answers requests in their order. The answer of an invalid request contains its error. Scores
  /// do not depend on the other requests, except for the rounding of sums.
  std::vector<Answer> answer(std::span<const task::ScoreRequest> requests);
  /// Scores all tokens of each text but the first, as for a text request, with details if
  /// options.likely > 0. No BOS token is prepended. `memory`: of plan(). `pace` divides the work.
  /// Within its calls between pieces, other texts may be scored.
  std::vector<TokenScores> score_tokens(const std::vector<std::vector<std::int64_t>>& texts,
      const MemoryPlan& memory, Pace* pace = nullptr);
  /// Returns the plan of memory options other than those of the constructor. Opened datastores and
  /// further models stay open. Throws the errors of the constructor.
  MemoryPlan plan(const MemoryOptions& memory) const;
  const MemoryPlan& memory() const { return memory_; }
  /// Returns the open datastores, n-grams and further models, for a Generator with the same model
  /// and options.
  const std::shared_ptr<OpenMemories>& open_memories() const { return open_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Returns the token before a text that has no context.
  std::optional<std::int64_t> beginning() const {
    return empty_.empty() ? std::nullopt : std::optional(empty_[0]);
  }
  /// Return notes about the window: window_note() if it exceeds the model's positions, cut_note()
  /// if contexts were truncated.
  std::string window_note() const { return long_window_note(windows_, loaded_.folder); }
  std::string cut_note() const { return scorer_->cut_contexts().note("contexts", windows_.window); }
  /// Returns a note if a request contained the text of a special token as ordinary text; else
  /// empty.
  const std::string& special_note() const { return special_note_; }
  /// Returns a digest of all settings that affect scores; see infer::signature(). `requests`:
  /// digest of the requests.
  std::string signature(const core::Digest& requests) const;

 private:
  // A text to score and the location of its scores; nullopt: no tokens to score.
  struct Asked {
    std::int64_t bytes = 0;
    std::optional<std::pair<std::size_t, std::size_t>> passage = {};  // and continuation
  };
  struct AskedChoice {
    std::vector<Asked> texts, domain;  // synonyms of a choice
  };
  struct Batch;

  std::int64_t bytes_of_first(std::uint32_t token, std::int64_t most) const;
  Asked ask_text(const task::ScoreRequest& request, Batch& batch);
  std::vector<Asked> ask(const std::string& context, const std::vector<std::string>& continuations,
      const task::ScoreRequest& request, Batch& batch);
  std::vector<AskedChoice> ask(const task::ScoreRequest& request, Batch& batch);
  text::Encoder& encoder_for(const task::ScoreRequest& request);
  void look_at(const std::string& text, const task::ScoreRequest& request);
  void read_verbalizers();
  std::unique_ptr<Engine> take_engine();

  AnswererOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  text::TokenizerPtr tokenizer_;
  text::TokenizerPtr parsing_special_;  // created on first use
  std::unique_ptr<text::Encoder> encoder_, special_encoder_;
  std::optional<text::SpecialText> special_text_;
  std::string special_note_;
  std::optional<text::Chat> chat_;
  std::vector<std::int64_t> begin_;   // tokens before every text and context
  std::vector<std::int64_t> empty_;   // tokens that replace an empty context
  WindowPlan own_windows_, windows_;  // windows_ includes passages before the windows
  std::shared_ptr<OpenMemories> open_;
  MemoryPlan memory_;
  std::map<std::string, std::vector<std::string>> verbalizers_;
  std::unique_ptr<Engine> engine_;
  std::optional<Citer> citer_;
  std::optional<PassageScorer> scorer_;
  std::vector<std::unique_ptr<Engine>> idle_;
};

/// Returns what "PASSAGE\nQuestion:" adds to log p(" QUESTION") after "\nQuestion:", by a model
/// that load_to_decode() loaded with weights of this type, without further memories. Only the first
/// 256 tokens of a question count. It says nothing if they exceed the window. `loaded` must stay
/// unchanged.
decltype(TurnModel::gains) question_gains(
    const model::Loaded& loaded, const nn::DeviceOptions& compute, const std::string& weights);

/// A JointTokens has the token ids of a context and of one of its continuations.
struct JointTokens {
  std::vector<std::int64_t> context, continuation;
  std::int64_t bytes = 0;  ///< of the continuation, including context bytes moved to it
};

/// Boundary says where the continuation begins. count: after as many tokens as the context has when
/// encoded alone (as in lm-evaluation-harness). prefix: after the tokens common to the context
/// alone and to the whole texts of all continuations.
enum class Boundary { count, prefix };

/// Encodes each continuation jointly with the context; tokens after the boundary belong to the
/// continuation, which may be empty. White space at the end of the context moves to the
/// continuations. With Boundary::prefix, context tokens after the common prefix and their bytes
/// also move to the continuations.
std::vector<JointTokens> encode_jointly(const text::Tokenizer& tokenizer, text::Encoder& encoder,
    const std::string& context, const std::vector<std::string>& continuations, Boundary boundary);

/// Returns the bytes of white space at the end of a UTF-8 text, as defined by Python's
/// str.isspace().
std::size_t trailing_space(const std::string& text);

}  // namespace infer
