#pragma once
// Encodes a common prefix once for several texts.

#include "infer/decode/decode_engine.h"
#include "infer/decode/pace.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// A non-empty stem and its branches. Each branch continues from a copy of the state after the
/// stem; a branch may be empty.
struct TokenTree {
  std::vector<std::int64_t> stem;
  std::vector<std::vector<std::int64_t>> branches;

  std::int64_t longest_branch() const;
};

/// f and g of a tree's tokens: (T, d) each.
struct EncodedTree {
  nn::Hidden stem;
  std::vector<nn::Hidden> branches;
};

/// Encodes trees. Not thread safe.
class TreeEncoder {
 public:
  /// If the window carries State, a stem may have any length and is encoded in blocks of one
  /// stride; otherwise a stem and its longest branch form a window. If layers keep memories and
  /// State is not carried, the State does not contain the whole stem, so each branch is encoded
  /// together with the stem. Engine and model must outlive the encoder.
  TreeEncoder(Engine& engine, const nn::Model& model, const WindowPlan& plan);

  /// Returns whether `one_more` fits into one call with `trees`: together they have about
  /// plan.batch_tokens at most. If State forgets, which affects all rows at once, no other tree
  /// fits.
  bool fits(std::span<const TokenTree> trees, const TokenTree& one_more) const;
  /// Encodes trees; results are independent of each other, except for the rounding of sums. With
  /// `keep`, the state after the stem of a single tree remains for the next call, which may reuse
  /// it for an equal stem.
  std::vector<EncodedTree> encode(std::span<const TokenTree> trees, bool keep = false);
  /// Divides calls into pieces; null: whole calls. It must outlive them. Calls whose result depends
  /// on what they read together are not divided.
  void go_at(Pace* pace) { pace_ = pace; }
  /// Encodes the next block of one text and returns its outputs and keys.
  nn::Hidden go_on(const std::vector<std::int64_t>& block, bool fresh);

 private:
  std::vector<EncodedTree> encode_again(std::span<const TokenTree> trees);
  void open(std::int64_t rows);
  std::vector<nn::Hidden> encode_stems(std::span<const TokenTree> trees);
  std::vector<nn::Hidden> feed(const std::vector<const std::vector<std::int64_t>*>& rows);

  Engine& engine_;
  WindowPlan plan_;
  bool forgets_, in_calls_, again_;
  bool fed_ = false;
  Pace* pace_ = nullptr;
  std::vector<std::int64_t> kept_;  // stem in the engine's single row; empty: none
  nn::Hidden kept_hidden_;          // of kept_
};

}  // namespace infer
