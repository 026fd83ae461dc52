#pragma once
// Requests in, answers out: a model with its memories, set up to score texts, continuations and
// choices. score's work.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/answers/answer.h"
#include "infer/answers/passage_scorer.h"
#include "infer/decode/decode_engine.h"
#include "infer/memory/cite.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/layer_reach.h"
#include "infer/windows/window_plan.h"
#include "model/folder.h"
#include "nn/base/runtime.h"
#include "task/score_request.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/special_text.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

struct AnswererOptions {
  std::string model, adapter, tokenizer;
  std::string boundary = "count";  ///< of a context and a continuation; prefix: see Boundary
  std::string domain_context;      ///< choices are scored behind it too; empty: they are not
  std::string verbalizers;         ///< a file, {choice: [text, ...]}: what stands for a choice
  bool special = false;            ///< texts of special tokens are these tokens
  bool chat = false;               ///< contexts may be conversations, by the model's chat template
  std::string system;              ///< message before each conversation
  bool cite = false;
  std::int64_t cite_most = 3;
  std::int64_t likely = 0;  ///< words of each of score_tokens()' details; no flag
  WindowOptions windows;
  LayerReachOptions reach;
  RetrieveOptions retrieve;
  MemoryOptions memory;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);
};

/// Not thread safe.
class Answerer {
 public:
  /// Loads the model and opens the stores. Throws Error{usage} for a model that reads pairs and for
  /// options that contradict themselves, Error{bad_data} for a model without a tokenizer, and as
  /// model::load(), plan_windows() and plan_memory() do.
  explicit Answerer(const AnswererOptions& options);
  /// With a model that is there already.
  Answerer(const AnswererOptions& options, model::Loaded loaded);

  /// In their order. What is wrong with a request stands in its answer. The figures do not depend
  /// on what is answered together, but for how sums are rounded.
  std::vector<Answer> answer(std::span<const task::ScoreRequest> requests);
  /// Of each text the scores of its tokens behind the first, as those of a request's text, with
  /// details where options.likely asks for words. Nothing is put in front of a text.
  std::vector<TokenScores> score_tokens(const std::vector<std::vector<std::int64_t>>& texts);
  /// Memories from here on; see Generator::remember_by().
  void remember_by(const MemoryOptions& memory);
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Lines about the window: it is longer than the model's positions; contexts so far were cut.
  std::string window_note() const { return long_window_note(windows_, loaded_.folder); }
  std::string cut_note() const;
  /// A request so far had the text of a special token as ordinary text; else empty.
  const std::string& special_note() const { return special_note_; }
  /// All that changes a figure; see infer::signature(). `requests`: a digest of them.
  std::string signature(const core::Digest& requests) const;

 private:
  // A text that is to be scored, and where its scores come from; none: there is nothing to score.
  struct Asked {
    std::int64_t bytes = 0;
    std::optional<std::pair<std::size_t, std::size_t>> passage = {};  // and continuation
  };
  struct AskedChoice {
    std::vector<Asked> texts, domain;  // of a choice's synonyms
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

  AnswererOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  text::TokenizerPtr tokenizer_;
  text::TokenizerPtr parsing_special_;  // once it is asked for
  std::unique_ptr<text::Encoder> encoder_, special_encoder_;
  std::optional<text::SpecialText> special_text_;
  std::string special_note_;
  std::optional<text::Chat> chat_;
  std::vector<std::int64_t> begin_;   // what stands before every text and context
  std::vector<std::int64_t> empty_;   // what stands in the place of an empty context
  WindowPlan own_windows_, windows_;  // the second with passages before its windows
  std::vector<std::shared_ptr<const BesideModel>> beside_;
  std::shared_ptr<const Stores> opened_;
  MemoryPlan memory_;
  std::map<std::string, std::vector<std::string>> verbalizers_;
  // Contexts are long, and its products of many rows are the faster ones.
  std::optional<ModuleEngine> engine_;
  std::optional<Citer> citer_;
  std::optional<PassageScorer> scorer_;
};

}  // namespace infer
