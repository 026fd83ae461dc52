#pragma once
// Decodes texts with retrieved passages in front, which are searched again every few tokens.

#include "infer/decode/decode_engine.h"
#include "infer/windows/retriever.h"

namespace infer {

/// Decodes each text in as many engine rows as passages are mixed. At each search, a row re-encodes
/// its passage and the last tokens of the text, with room for the tokens until the next search.
/// Tokens get the probabilities of eval-ppl when its windows begin at the same token. Not thread
/// safe.
class PrefixedRows {
 public:
  /// The engine must outlive the object, which uses it exclusively from start() on.
  PrefixedRows(Engine& engine, RetrievePlan plan, std::int64_t window);

  /// Starts the texts; prompts are not empty.
  void start(const std::vector<std::vector<std::int64_t>>& prompts);
  /// Appends a token to each text.
  void advance(const std::vector<std::int64_t>& tokens);
  /// Replaces text i by the former text rows[i].
  void select(const std::vector<std::int64_t>& rows);

  /// Returns f (texts, d_model) and g (texts, d_key) of each text's last token after its best
  /// passage.
  nn::Hidden best() const;
  /// Returns log p of every token after each text, mixed over passages: (texts, V).
  torch::Tensor log_probs(nn::Head& head) const;
  /// Returns whether the last start() or advance() searched for passages.
  bool anew() const { return since_ == 0; }
  const Prefixes& prefixes(std::int64_t text) const {
    return prefixes_[static_cast<std::size_t>(text)];
  }
  const passages::PassageIndex& index() const { return retriever_.index(); }
  std::int64_t mix() const { return retriever_.plan().mix; }

 private:
  void read();
  void feed(const std::vector<RowInput>& feeds);

  Engine& engine_;
  Retriever retriever_;
  std::int64_t window_;
  std::vector<std::vector<std::int64_t>> texts_;  // last tokens of each text
  std::vector<Prefixes> prefixes_;
  std::int64_t since_ = 0;  // tokens since the last search
  nn::Hidden hidden_;       // (texts * mix, d) of each row's last token
};

}  // namespace infer
