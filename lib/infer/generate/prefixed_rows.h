#pragma once
// Texts that grow behind passages, which are looked for again every few tokens.

#include <cstdint>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "infer/windows/retriever.h"
#include "nn/base/head.h"
#include "nn/base/torch.h"

namespace infer {

/// Each text has as many rows of an engine as there are passages to mix; a row is read afresh with
/// its passage and as many of the last tokens as leave room for those that come before the next
/// search. Every token is given what eval-ppl gives it where the windows begin with the same one.
/// Not thread safe.
class PrefixedRows {
 public:
  /// The engine must outlive it, and is its alone from start() on.
  PrefixedRows(Engine& engine, RetrievePlan plan, std::int64_t window);

  /// None of the prompts is empty.
  void start(const std::vector<std::vector<std::int64_t>>& prompts);
  /// The token that follows in each text.
  void advance(const std::vector<std::int64_t>& tokens);
  /// Text i becomes what text rows[i] was.
  void select(const std::vector<std::int64_t>& rows);

  /// What the best passage makes of each text's last token: f (texts, d_model), g (texts, d_key).
  nn::Hidden best() const;
  /// log p of every word after each text, mixed: (texts, V).
  torch::Tensor log_probs(nn::Head& head) const;
  /// They were looked for at the last start() or advance().
  bool anew() const { return since_ == 0; }
  const Prefixes& prefixes(std::int64_t text) const {
    return prefixes_[static_cast<std::size_t>(text)];
  }
  const passages::PassageIndex& index() const { return retriever_.index(); }
  std::int64_t mix() const { return retriever_.plan().mix; }

 private:
  void read();
  void feed(const std::vector<Feed>& feeds);

  Engine& engine_;
  Retriever retriever_;
  std::int64_t window_;
  std::vector<std::vector<std::int64_t>> texts_;  // their last tokens
  std::vector<Prefixes> prefixes_;
  std::int64_t since_ = 0;  // tokens since they were looked for
  nn::Hidden hidden_;       // (texts * mix, d) of the rows' last tokens
};

}  // namespace infer
