#pragma once
// Positions of the windows of a data set, their tokens as batches, and their scored rows.
// Groups windows into batches, and into parts that can be scored by separate processes.

#include "infer/windows/window_plan.h"

namespace infer {

/// Consecutive inputs of one stream. The input whose target is element t of the data has position t
/// - 1.
struct Span {
  std::uint64_t target;  ///< element of the first input's target
  std::int64_t length;
  std::int64_t first_scored;   ///< inputs before it are context
  std::int64_t stream;         ///< 0, or the document's number
  std::int64_t number;         ///< index of the window
  bool fresh;                  ///< first window of its stream
  bool begins = true;          ///< its first input is the stream's first
  std::int64_t first_new = 0;  ///< earlier inputs were in the previous window
  std::int64_t counted = 0;    ///< number of tokens for which the mean of the scored ones counts
};

/// Yields the windows of a data set in the order of the stream, in the plan's layout. Windows with
/// carried State have no context. Each window scores at least one token.
class Windows {
 public:
  /// `documents` must outlive the object.
  Windows(const WindowPlan& plan, const shard::Documents& documents, std::uint64_t elements);
  std::optional<Span> next();

 private:
  bool next_stream();
  bool lay(Span& span) const;
  WindowPlan plan_;
  const shard::Documents& documents_;
  std::uint64_t elements_;
  std::size_t document_ = 0;    // next document
  std::int64_t stream_ = -1;    // current stream
  std::uint64_t target_ = 0;    // target of the stream's first input
  std::int64_t inputs_ = 0;     // number of inputs of the stream
  std::int64_t done_ = 0;       // number of inputs in windows so far
  std::int64_t in_stream_ = 0;  // number of windows of the stream
  std::int64_t number_ = 0;
};

/// Returns for each document the fraction of its tokens that windows score, weighted as they count;
/// 1 for an empty document. With plan.learned, the fraction of marked tokens. Removed end tokens of
/// streams and sources of pairs do not count.
std::vector<double> scored_shares(
    const WindowPlan& plan, const shard::Documents& documents, std::uint64_t elements);

/// Reads one row for each span, padded on the right to the longest; for pairs with their sources.
/// `plan` gives the BOS token of windows. Throws Error{bad_data} for a token that is not below
/// `vocabulary`.
nn::Batch batch_of(const std::vector<Span>& spans, const shard::Dataset& data,
    const WindowPlan& plan, std::int64_t vocabulary);

/// Returns the inputs of one row, tokens [begin, end) of a stream, window `number`, without
/// targets.
nn::Batch context_batch(const std::vector<std::int64_t>& tokens, std::int64_t begin,
    std::int64_t end, std::int64_t number);

/// Returns the token after which the documents start, if the tokenizer has one and the first
/// document ends with it; it also precedes a stream's first token. Otherwise -1.
std::int64_t beginning_token(const shard::Dataset& data);

/// Encodes a batch of windows. With carried State, the batch is one window and `state` continues
/// from the previous one.
inline nn::Hidden forward_windows(nn::Model& model, const WindowPlan& plan, const nn::Batch& batch,
    const Span& first, nn::State& state) {
  auto& architecture = *model.architecture;
  if (!plan.carried) return architecture.forward(batch, nullptr);
  if (!first.fresh && architecture.carry() == nn::Carry::forget)
    architecture.forget(state, plan.window - plan.stride);
  return architecture.forward(batch, &state);
}

/// Trains on the tokens that a window of a text scores. `window_token`: see WindowPlan.
void learn_window(DynamicWeights& learner, nn::Model& model,
    const std::vector<std::int64_t>& tokens, const Span& span, std::int64_t window_token);

/// Concatenates the scored rows of all windows: (B, T, ...) to (R, ...).
inline torch::Tensor scored_rows(const torch::Tensor& rows, const std::vector<Span>& spans) {
  std::vector<torch::Tensor> pieces;
  for (std::size_t i = 0; i < spans.size(); ++i)
    pieces.push_back(
        rows[static_cast<std::int64_t>(i)].slice(0, spans[i].first_scored, spans[i].length));
  return pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
}

/// Windows of one forward pass.
struct WindowBatch {
  std::vector<Span> spans;
  std::int64_t group;  ///< index of the indivisible group
  bool last;           ///< last batch of a set of sorted batches
};

/// Divides all windows into batches of at most plan.batch_tokens, including padding; with carried
/// State, into single windows. A group is a batch; with carried State, all windows of a stream,
/// because each needs its predecessors; with sorted windows, those that are sorted together.
class WindowBatches {
 public:
  /// `plan` and `data` must outlive the object. `sorted`: streams of similar length share a batch.
  WindowBatches(const WindowPlan& plan, const shard::Dataset& data, bool sorted = false);
  std::optional<WindowBatch> next();

 private:
  void fill();
  void sort_some();
  const WindowPlan& plan_;
  Windows windows_;
  bool sorted_;
  std::deque<Span> ahead_;  // one span, or those being sorted
  std::optional<Span> waiting_;
  bool more_ = true;
  std::int64_t group_ = -1;
};

/// Throws the errors of batch::check_pairs(), and Error{bad_data} for a model that reads no source.
void check_pairs(const shard::Dataset& data, const nn::Model& model);

/// Returns the plan that scores every token of every target, including its end-of-document token,
/// given its source: one window for each pair. Throws the errors of check_pairs().
WindowPlan pair_windows(
    const shard::Dataset& data, const nn::Model& model, std::int64_t batch_tokens);

}  // namespace infer
