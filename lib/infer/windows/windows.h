#pragma once
// Where the windows of a data set lie, and their tokens as batches.

#include <cstdint>
#include <optional>
#include <vector>

#include "infer/windows/window_plan.h"
#include "nn/base/batch.h"
#include "shard/dataset.h"

namespace infer {

/// Consecutive inputs of one stream. The input whose target is element t of the data stands at
/// position t - 1.
struct Span {
  std::uint64_t target;  ///< of the first input
  std::int64_t length;
  std::int64_t first_scored;   ///< inputs before it are context
  std::int64_t stream;         ///< 0, or the document's number
  std::int64_t number;         ///< counts windows from 0
  bool fresh;                  ///< the first of its stream
  bool begins = true;          ///< its first input is its stream's
  std::int64_t first_new = 0;  ///< inputs before it stood in the window before
  std::int64_t counted = 0;    ///< tokens for which the mean of those that are scored counts
};

/// The windows of a data set, in the order of the stream, as the plan's layout has them. Carried
/// windows have no context. Each scores at least one token.
class Windows {
 public:
  /// `documents` must outlive this.
  Windows(const WindowPlan& plan, const shard::Documents& documents, std::uint64_t elements);
  std::optional<Span> next();

 private:
  bool next_stream();
  bool lay(Span& span) const;
  WindowPlan plan_;
  const shard::Documents& documents_;
  std::uint64_t elements_;
  std::size_t document_ = 0;    // the next one
  std::int64_t stream_ = -1;    // the current one
  std::uint64_t target_ = 0;    // of the stream's first input
  std::int64_t inputs_ = 0;     // of the stream
  std::int64_t done_ = 0;       // of them, in windows
  std::int64_t in_stream_ = 0;  // windows
  std::int64_t number_ = 0;
};

/// Of each document the share of its tokens that windows score, as they count; of an empty one 1.
/// Where plan.learned the tokens that are marked.
/// What closes a stream and is not of it does not count, and of pairs sources do not: 0.
std::vector<double> scored_shares(const WindowPlan& plan, const shard::Documents& documents,
                                  std::uint64_t elements);

/// One row a span, padded on the right to the longest; of pairs with their sources. Of `plan` what
/// windows begin with. Throws Error{bad_data} for a token that is not below `vocabulary`.
nn::Batch batch_of(const std::vector<Span>& spans, const shard::Dataset& data,
                   const WindowPlan& plan, std::int64_t vocabulary);

/// The token after which the data's documents start, if the tokenizer has one and the first
/// document ends with it: what stands before a stream's first token too. Else -1.
std::int64_t beginning_token(const shard::Dataset& data);

}  // namespace infer
