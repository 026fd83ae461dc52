#pragma once
// Continues prompts with a model and its memories: sample's work.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "infer/generate/decode_session.h"
#include "infer/generate/generator_beam.h"
#include "infer/generate/generator_draw.h"
#include "infer/generate/generator_options.h"
#include "infer/generate/generator_prompts.h"
#include "infer/generate/generator_source.h"
#include "infer/generate/generator_stop.h"
#include "infer/generate/spans.h"
#include "infer/memory/cite.h"
#include "infer/sources/memory_plan.h"
#include "model/folder.h"
#include "nn/base/torch.h"
#include "text/tokenizer/special_text.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// A continuation of a prompt.
struct Sample {
  std::uint64_t prompt = 0;          ///< its number
  std::int64_t sample = 0;           ///< of that prompt; of a beam, the rank
  std::string text;                  ///< without the prompt, the end token and the stop string
  std::vector<std::int64_t> tokens;  ///< all that were drawn, those of end and stop included
  double log_prob = 0;               ///< of the tokens, nats, by model and memories as they are
  Finish finish = Finish::length;
  std::vector<CitedToken> cited;      ///< with options.cite, of each token
  std::vector<TakenSpan> spans = {};  ///< all that were proposed
  /// Passages that stood before it: {token, passages} for each search, but for a beam's.
  core::OrderedJson retrieved = core::OrderedJson::array();
};

/// What run() tells as it goes. Samples of one prompt, and prompts, come in any order.
struct GeneratorWatch {
  /// More of a text, as soon as no stop string can take it back (not of beams). May be cut within
  /// a character.
  std::function<void(std::uint64_t prompt, std::int64_t sample, std::string_view piece)> piece = {};
  std::function<void(const Sample&)> finished = {};
  std::function<void(const std::string&)> warn = {};        ///< a source was cut
  std::function<void(std::uint64_t tokens)> progress = {};  ///< so far, of all texts; may throw
};

/// A text depends on the model, the options, the seed, the prompt, the sample's number and, where
/// the prompt has no seed of its own, the prompt's number, and on nothing else: not on what is
/// decoded beside it (to the last bit with TransformerEngine, elsewhere as far as sums of floats do
/// not depend on the size of a batch). Not thread safe.
class Generator {
 public:
  /// Keeps the model. `record`: see make_engine(). Throws Error{usage} for options that contradict
  /// themselves or the model, Error{bad_data} for a model without a tokenizer, Error{unavailable}.
  Generator(model::Loaded loaded, GeneratorOptions options, const MemoryOptions& memory,
            torch::Device device, bool record = true);

  /// Continues prompts, which are numbered from where the last call ended. An empty prompt stands
  /// for the token after which documents start. Throws Error{usage} if there is none. With
  /// translation.source prompts are sources, those of about one length decoded together; the
  /// translation of an empty one is empty, and all of them end before a newline. Throws as
  /// SourceReader::read does, and Error{bad_data} naming a prompt whose own settings these options
  /// have no place for: max_tokens of a translation, temperature or seed of a search.
  void run(const std::vector<Prompt>& prompts, const GeneratorWatch& watch);

  /// How words are chosen from here on, and how many texts a prompt has; see GeneratorOptions.
  void draw_by(std::int64_t top_k, double top_p, std::int64_t samples);
  /// Memories from here on. Stores and further models that are open are not opened again. Throws as
  /// the constructor does, and leaves what was there.
  void remember_by(const MemoryOptions& memory);

  const GeneratorOptions& options() const { return options_; }
  /// Those that run() was given so far: the number of the next one.
  std::uint64_t prompts() const { return prompts_; }
  /// How stores were asked so far.
  SearchCounts searches() const { return session_->searches(); }
  std::int64_t window() const { return window_; }
  /// Lines about the window: it is longer than the model's positions; prompts so far were longer.
  const std::string& window_note() const { return window_note_; }
  std::string long_prompts_note() const;
  Engine& engine() { return *engine_; }
  nn::Model& model() { return *loaded_.model; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Throws Error{bad_data} for tokens of a prompt that are none of the tokenizer's.
  std::vector<std::int64_t> encode(const Prompt& prompt);
  /// What a user should know of the prompts so far: one had the text of a special token as ordinary
  /// text; else empty.
  const std::string& special_note() const { return special_note_; }
  /// How far the engine is from the model's own modules in float32, over the first tokens of a
  /// prompt, in a line. For before run().
  std::string engine_error(const Prompt& prompt);

 private:
  struct Growing;
  struct Word;
  struct Search;
  void check_translation() const;
  void read_tokenizer();
  void check_memories(const MemoryPlan& memories) const;
  void set_own(Start& start, const Prompt& prompt) const;
  std::vector<Start> starts_of(const std::vector<Prompt>& prompts, const GeneratorWatch& watch);
  void open_rows(const std::vector<Start>& starts);
  text::StreamDecoder decoder_after(const Start& start) const;
  void draw(const std::vector<Start>& starts, std::int64_t first, std::int64_t last,
            const GeneratorWatch& watch);
  std::vector<Word> next_words(std::vector<Growing>& texts, Draw& draw);
  std::optional<std::int64_t> grow(Growing& text, std::int64_t row, const Word& word,
                                   const GeneratorWatch& watch);
  void propose(Growing& text, std::int64_t row, std::int64_t token, double log_prob);
  void search(const std::vector<Start>& starts, const GeneratorWatch& watch);
  void cite(const std::vector<Start>& starts, std::vector<Sample>& samples);
  // log p of the tokenizer's words; a model may have more, which pad its head and are no text.
  std::span<const float> row_of(const torch::Tensor& rows, std::int64_t row) const;
  std::optional<Finish> ends(StopText& text, text::StreamDecoder& decoder,
                             std::int64_t token) const;
  void count(std::size_t tokens, const GeneratorWatch& watch);
  void note_passages(std::int64_t row, Sample& sample) const;

  model::Loaded loaded_;
  GeneratorOptions options_;
  torch::Device device_;
  text::TokenizerPtr tokenizer_;
  text::TokenizerPtr parsing_special_;  // once it is asked for
  std::optional<text::SpecialText> special_text_;
  std::string special_note_;
  std::optional<std::uint32_t> end_;  // the tokenizer's
  std::set<std::int64_t> ends_;       // what ends a text: that one, and those that the folder names
  std::vector<std::int64_t> begin_;   // what stands before a prompt
  std::optional<SourceReader> sources_;
  std::int64_t window_ = 0;
  std::string window_note_;
  std::uint64_t long_prompts_ = 0, long_tokens_ = 0, forgotten_ = 0;
  std::unique_ptr<Engine> engine_;
  std::optional<Session> session_;
  std::optional<Citer> citer_;
  // What memories are planned with, and what is open of them.
  WindowPlan windows_;
  RetrievePlan retrieve_;
  std::vector<std::shared_ptr<const BesideModel>> beside_;
  std::shared_ptr<const Stores> opened_;
  std::shared_ptr<const Stores> stores_;  // that take part
  bool record_;
  std::uint64_t prompts_ = 0, tokens_ = 0;
};

}  // namespace infer
