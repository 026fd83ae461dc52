#pragma once
// The file of --per-token: what each scored token cost.

#include <string>

#include "core/io.h"
#include "infer/score/scorer.h"
#include "shard/dataset.h"
#include "task/token_scores.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// Writes a line (task/token_scores.h) for each token of each block, in the order given; whole or
/// not at all. `data` must outlive it.
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
