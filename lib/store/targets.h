#pragma once
// Computes, for each token of a store's own text, the distribution of its nearest entries except
// its own, for train --targets (Memory Decoder, Cao et al. 2025).

#include "core/options.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "store/datastore.h"

namespace store {

/// TargetOptions holds the parameters of the targets.
struct TargetOptions {
  std::int64_t k = 1024, nprobe = 32;
  bool rescore = false;
  double temperature = 0;  ///< 0: sqrt(width)
  std::int64_t keep = 64;  ///< tokens kept per distribution
  void fields(core::FieldList& f);
};

/// A WordShare is a token and its probability in a distribution.
struct WordShare {
  std::uint32_t word = 0;
  float share = 0;
  bool operator==(const WordShare&) const = default;
};

/// Converts the hits of one query to tokens: the softmax of score / temperature over at most k hits
/// other than row `own`, summed by label. Returns the `keep` largest probabilities; ties are broken
/// by the lower token id; the omitted mass is 1 minus their sum. Returns an empty list if nothing
/// was found. Rows, scores and labels are as in Hits.
std::vector<WordShare> word_shares(std::span<const std::int64_t> rows,
    std::span<const float> scores, std::span<const std::int32_t> labels, std::int64_t own,
    std::int64_t k, double temperature, std::int64_t keep);

/// Returns the store's row of each token of the data; -1 for a token without context. Throws
/// Error{bad_data} unless the store holds exactly this whole text with these tokens as labels.
std::vector<std::int64_t> rows_of(const Datastore& store, const shard::Dataset& data);

/// Returns true if the tokens and probabilities are a distribution or empty: tokens below
/// `vocabulary`, no duplicates, and a sum of at most 1.
bool is_distribution(
    std::span<const float> words, std::span<const float> shares, std::uint64_t vocabulary);

/// Returns the header of a shard of targets: vectors of `keep` tokens followed by `keep`
/// probabilities; unused elements are 0.
shard::Header targets_header(const TargetOptions& options);
inline constexpr const char* kTargetsProgram = "build-targets";
/// Returns the provenance: options, text and store.
core::OrderedJson targets_provenance(
    const Datastore& store, const shard::Dataset& data, const TargetOptions& options);

/// Writes one vector per token of the data. `progress` receives the number of tokens so far and may
/// throw to stop. Throws as rows_of() and Datastore::search() do.
void write_targets(const Datastore& store, const shard::Dataset& data, const TargetOptions& options,
    shard::Writer& out, const std::function<void(std::uint64_t)>& progress);

}  // namespace store
