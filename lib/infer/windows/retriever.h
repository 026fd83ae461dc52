#pragma once
// Retrieves passages similar to the end of a text.
// Prepends retrieved passages to windows.
// Retrieved passages in the last turn of a conversation (--chat with --retrieve).

#include "infer/windows/windows.h"
#include "passages/passage_index.h"
#include "text/chat/chat_template.h"

namespace infer {

/// A passage to prepend to a text.
struct Prefix {
  std::vector<std::int64_t> tokens;
  std::uint32_t passage = 0;  ///< index in the passage index
  double score = 0;           ///< BM25
  double weight = 1;          ///< sum 1 over the passages of a text
};
/// Passages, best first; empty if no passage contains a word of the query.
using Prefixes = std::vector<Prefix>;

/// The last tokens of a text, and passages to exclude.
struct RetrievalQuery {
  std::vector<std::uint32_t> tokens;
  std::vector<passages::UnitRange> without = {};
};

/// Retrieves passages. Caches words; not thread safe.
class Retriever {
 public:
  explicit Retriever(RetrievePlan plan);
  const RetrievePlan& plan() const { return plan_; }
  const passages::PassageIndex& index() const { return *plan_.index; }

  /// Returns the plan's `mix` best passages for each query, with at most its `tokens` tokens each.
  std::vector<Prefixes> find(std::span<const RetrievalQuery> queries);

 private:
  RetrievePlan plan_;
  passages::PassageQueries queries_;
  passages::BlockSearcher searcher_;
};

/// Returns the length of the longest passage in tokens.
std::int64_t longest(const Prefixes& prefixes);
/// Describes each passage: passage, score, weight, document, offset (of the passage in its
/// document, in tokens) and length.
core::OrderedJson to_json(const Prefixes& prefixes, const passages::PassageIndex& index);

/// Retrieves passages for windows. Not thread safe.
class WindowPrefixes {
 public:
  /// `plan` and `data` must outlive the object.
  WindowPrefixes(const WindowPlan& plan, const shard::Dataset& data);

  /// Retrieves passages similar to the text before the first scored token of each window, except
  /// those of that token's own document. Removes the oldest tokens of windows to make room. Finds
  /// none if the scored tokens leave no room.
  std::vector<Prefixes> find(std::vector<Span>& spans);

 private:
  std::vector<std::uint32_t> query(const Span& span) const;
  const std::vector<passages::UnitRange>& own_passages(std::uint64_t element);
  const WindowPlan& plan_;
  const shard::Dataset& data_;
  Retriever retriever_;
  std::uint64_t document_ = ~std::uint64_t{0};  // document of own_
  std::vector<passages::UnitRange> own_;
};

/// A batch whose rows begin with passages: one row for each passage, and at least one for each
/// window.
struct PrefixedBatch {
  nn::Batch batch;
  std::vector<std::int64_t> window;  ///< window of each row
  std::vector<std::int64_t> before;  ///< passage tokens of each row
  std::vector<double> weight;        ///< weight of each row
};
/// Prepends passages; `host` has one row for each of the windows' `lengths`, on the CPU.
PrefixedBatch prepend(const nn::Batch& host, const std::vector<std::int64_t>& lengths,
    const std::vector<Prefixes>& prefixes);

/// Extracts the first row of each window from the output of a prefixed batch and removes the
/// passage: the shape of a batch of plain windows, (windows, steps, d).
nn::Hidden without_prefixes(const nn::Hidden& hidden, const PrefixedBatch& prefixed,
    const std::vector<std::int64_t>& lengths);

/// What passages of a turn are chosen by. Several threads may call the functions.
struct TurnModel {
  /// Returns unit vectors (n, d) of n > 0 words, float32 on the CPU. Null: all passages cover a
  /// turn.
  std::function<torch::Tensor(const std::vector<std::string_view>&)> words;
  /// Returns log p(question | passage) - log p(question) in nats, for each passage; empty if the
  /// model cannot say. Null: the order of BM25, and gains of 0.
  std::function<std::vector<double>(
      const std::string& question, const std::vector<std::string>& passages)>
      gains;
};

/// Options of passages for a turn. BM25 finds, once, the `candidates` that share most with the
/// words of the turn. Of these, the turn gets those after which it is most probable (Sachan et al.
/// 2022, "Improving passage retrieval with zero-shot question generation"): at most `k`, and only
/// those whose gain is at most `within` nats below the best one's. None, unless cover + gain / 25
/// of one is at least `evidence`. The cover is sum w c / sum w over the words of the turn that are
/// searched for; w is the idf; c is 1 for a term of the passage, else the largest cosine with a
/// word of the passage, at least 0.
struct TurnOptions {
  std::int64_t k = 3, candidates = 5;
  double within = 1, evidence = 0.9;  ///< evidence 0: not required
  std::string form;  ///< file of a template with `passages` and `question`; empty: the default
  /// May be set after settle().
  std::shared_ptr<TurnModel> model = std::make_shared<TurnModel>();
  void fields(core::FieldList& f);

  /// Returns what a chat does with the index of `retrieve`, which is then no longer that of
  /// windows; nothing without an index or without `chat`. Throws Error{usage} for options that are
  /// set and do not apply, and as TurnPassages.
  text::Chat::Revision settle(RetrieveOptions& retrieve, bool chat) const;
};

/// Puts passages into the last user's turn. Const calls are thread safe.
class TurnPassages {
 public:
  /// Opens an index of passages. `tokens` limits each passage; 0: 256. Throws the errors of
  /// passages::PassageIndex, of core::read_text() and of text::ChatTemplate.
  TurnPassages(const std::string& index, std::int64_t tokens, TurnOptions options);

  /// Replaces the content of the last message whose role is user by the template with the
  /// passages; without a passage, it stays.
  /// Returns to_json() of the passages. Throws Error{bad_data} for a template that fails.
  core::OrderedJson put_into(core::OrderedJson& messages) const;

 private:
  struct Candidate {
    Prefix prefix;
    std::string text;
    double gain = 0;
  };
  void choose(const std::string& turn, std::vector<Candidate>& candidates) const;
  bool shows(const std::string& turn, const std::vector<Candidate>& chosen) const;

  passages::PassageIndex index_;
  std::uint64_t tokens_;
  TurnOptions options_;
  text::ChatTemplate form_;
};

}  // namespace infer
