#pragma once
// Writes the --per-token file: the loss of each scored token.

#include <string>

#include "core/io.h"
#include "infer/score/scorer.h"
#include "shard/dataset.h"
#include "task/token_scores.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// Writes a line (task/token_scores.h) for each token of each block, in the given order. The file
/// appears complete at commit() or not at all. `data` must outlive the object.
class PerToken {
 public:
  PerToken(const std::string& path, const shard::Dataset& data, const MemoryPlan& memory);
  void add(const Scored& scored);
  void commit() { out_.commit(); }

 private:
  core::Output out_;
  task::TokenScoreWriter writer_;
  const shard::Documents& documents_;
  MemoryPlan memory_;
  Mixture mixture_;
  std::size_t document_ = 0;
  text::TokenizerPtr tokenizer_;
};

}  // namespace infer
