#pragma once
// Breaks the loss down by token frequency, by position in the document, or by document.

#include <string>
#include <vector>

#include "core/json.h"
#include "infer/score/scorer.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// Sums of the scores passed to add(), by bucket.
class Breakdown {
 public:
  /// Buckets by frequency: tokens with 0, 1-9, 10-99, ... occurrences in `counts` (for example, the
  /// training data). Throws Error{bad_data} if its tokenizer differs from that of `data`.
  static Breakdown by_frequency(const shard::Dataset& data, const shard::Dataset& counts);
  /// Buckets by position: tokens 1, 2-3, 4-7, ... of their document (from 0, the first token).
  static Breakdown by_position(const shard::Dataset& data);
  static Breakdown by_document(const shard::Dataset& data);

  void add(const Scored& scored);
  /// Returns a row {bucket, tokens, share (fraction of all tokens), loss, perplexity} for each
  /// non-empty bucket, in order.
  std::vector<core::OrderedJson> rows() const;

 private:
  Breakdown(std::int64_t buckets, bool by_token, torch::Tensor of, torch::Tensor document_ends);
  torch::Tensor buckets_of(const Scored& scored) const;

  bool by_token_;
  torch::Tensor bucket_;            // by token id (by_token), else powers of two or empty
  torch::Tensor document_ends_;     // (documents) int64
  torch::Tensor nats_, tokens_;     // for each bucket
  std::vector<std::string> names_;  // empty: the number is the name
};

}  // namespace infer
