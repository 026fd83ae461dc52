#pragma once
// Reads rows of a data set as batches: consecutive tokens, and pairs of source and target.
// Selects the BOS token of a text (--bos).

#include "nn/base/batch.h"
#include "shard/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace batch {

/// A row of a batch: inputs [begin, begin + length) of the data; the target of each input is the
/// next token.
struct Row {
  std::uint64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t run = 0, segment = 0;  ///< nn::TokenPositions
  bool fresh = true;
  std::int64_t context = 0;  ///< number of first inputs whose targets are not scored
  /// Token in place of the first input; -1: none. With one, `begin` may be -1: before the data.
  std::int64_t first = -1;
  bool operator==(const Row&) const = default;
};

/// Reads rows, padded on the right to the longest; positions are the inputs' elements. With a
/// vocabulary, throws Error{bad_data} for a token that is not below it. Throws the errors of
/// Dataset::read.
nn::Batch read_rows(const shard::Dataset& data, const std::vector<Row>& rows,
    std::optional<std::int64_t> vocabulary = std::nullopt);

/// Elements of the shard that form one side of a pair, including the end-of-document token.
struct Side {
  std::uint64_t begin = 0;
  std::int64_t length = 0;
};
Side source_of(const shard::Documents& documents, std::int64_t pair);
Side target_of(const shard::Documents& documents, std::int64_t pair);
/// Returns the last token of a side, which is not empty.
std::uint32_t last_token(const shard::Dataset& data, const Side& side);
/// Returns the sources of pairs, (rows, S) int64, where -1 is padding. With a vocabulary, throws as
/// read_rows().
torch::Tensor read_sources(const shard::Dataset& data, const std::vector<std::int64_t>& pairs,
    std::optional<std::int64_t> vocabulary = std::nullopt);

/// Checks that `data` are pairs, at least one, with non-empty sides, whose tokenizer has an
/// end-of-document token. Throws Error{bad_data}.
void check_pairs(const shard::Dataset& data);

/// Reads pairs into a batch, one row for each pair, with source and target padded on the right.
/// With end token e and target y_1 ... y_n e, inputs are e y_1 ... y_n and targets y_1 ... y_n e;
/// the source keeps its own e. Run and segment of the places are the pair's number, positions are
/// the elements' offsets. All rows are fresh. Throws Error{bad_data} for a pair that does not end
/// with e.
nn::Batch read_pairs(const shard::Dataset& data, const std::vector<std::int64_t>& pairs);

/// Groups consecutive pairs of `order`: at most `batch_tokens` target tokens in a group, including
/// padding, and at least one pair.
std::vector<std::vector<std::int64_t>> group_pairs(const shard::Documents& documents,
    const std::vector<std::int64_t>& order, std::int64_t batch_tokens);

/// Returns the BOS token for `begin`. "auto": the single token that the tokenizer's template puts
/// before a text, nullopt if there is none. "none": -1. Otherwise the token with this text.
/// `tokenizer` may be null; `name` is its owner's, for messages. Throws Error{usage} for an unknown
/// token.
std::optional<std::int64_t> chosen_beginning(
    const std::string& begin, const text::Tokenizer* tokenizer, const std::string& name);

}  // namespace batch
