#pragma once
// Tokens that several texts begin with, encoded once for all of them.

#include <cstdint>
#include <span>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "infer/windows/window_plan.h"
#include "nn/base/architecture.h"

namespace infer {

/// A stem, not empty, and branches of it, each of which goes on from a copy of what is carried
/// after the stem; a branch may be empty.
struct TokenTree {
  std::vector<std::int64_t> stem;
  std::vector<std::vector<std::int64_t>> branches;

  std::int64_t longest_branch() const;
};

/// f and g of its tokens: (T, d) each.
struct EncodedTree {
  nn::Hidden stem;
  std::vector<nn::Hidden> branches;
};

/// Not thread safe.
class TreeEncoder {
 public:
  /// Where windows are carried, stems are as long as they like, and go through the model in blocks
  /// of a stride; else a stem is a window with its longest branch. Layers that keep memories and
  /// whose State is not carried have a State that holds too little of a stem: each branch is read
  /// together with it. Engine and model must outlive this.
  TreeEncoder(Engine& engine, const nn::Model& model, const WindowPlan& plan);

  /// Whether one more goes through the model with those that are there: so that about
  /// plan.batch_tokens do together, and where State forgets, which all rows do at once, none.
  bool fits(std::span<const TokenTree> trees, const TokenTree& one_more) const;
  /// What each gives depends on no other, but for how sums are rounded. With `keep` what is carried
  /// after the stem, of one tree, stays for the next call, whose one stem may be the same.
  std::vector<EncodedTree> encode(std::span<const TokenTree> trees, bool keep = false);
  /// One text, a block after the other: f and g of this one.
  nn::Hidden go_on(const std::vector<std::int64_t>& block, bool fresh);

 private:
  std::vector<EncodedTree> encode_again(std::span<const TokenTree> trees);
  void open(std::int64_t rows);
  std::vector<nn::Hidden> encode_stems(std::span<const TokenTree> trees);
  std::vector<nn::Hidden> feed(const std::vector<const std::vector<std::int64_t>*>& rows);

  Engine& engine_;
  WindowPlan plan_;
  bool forgets_, again_;
  bool fed_ = false;
  std::vector<std::int64_t> kept_;  // the stem that the engine's one row has read; empty: none
  nn::Hidden kept_hidden_;          // of it
};

}  // namespace infer
