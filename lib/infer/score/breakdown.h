#pragma once
// The loss by parts of the text: by how frequent the word is, by how much came before it, by
// document.

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/score/scorer.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Sums by bucket of what add() is given.
class Breakdown {
 public:
  /// Words seen 0, 1-9, 10-99, ... times in `counts` (the training data, say). Throws
  /// Error{bad_data} if its tokenizer is not that of `data`.
  static Breakdown by_frequency(const shard::Dataset& data, const shard::Dataset& counts);
  /// Tokens 1, 2-3, 4-7, ... of their document (counted from 0; token 0 is a document's first).
  static Breakdown by_position(const shard::Dataset& data);
  static Breakdown by_document(const shard::Dataset& data);

  void add(const Scored& scored);
  /// bucket, tokens, share (of the tokens), loss, perplexity: those that have tokens, in order.
  std::vector<core::OrderedJson> rows() const;

 private:
  Breakdown(std::int64_t buckets, bool by_token, torch::Tensor of, torch::Tensor document_ends);
  torch::Tensor buckets_of(const Scored& scored) const;

  bool by_token_;
  torch::Tensor bucket_;         // of each token id (by_token), else the powers of two or nothing
  torch::Tensor document_ends_;  // (documents) int64
  torch::Tensor nats_, tokens_;  // a bucket
  std::vector<std::string> names_;  // empty: the number
};

}  // namespace infer
