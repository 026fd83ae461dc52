#pragma once
// What a store says of the very text that it holds: of each token the distribution of its nearest
// entries but for its own, for train --targets (Memory Decoder, Cao et al. 2025).

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/options.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "store/datastore.h"

namespace store {

struct TargetOptions {
  std::int64_t k = 1024, nprobe = 32;
  bool rescore = false;
  double temperature = 0;  ///< 0: sqrt(width)
  std::int64_t keep = 64;  ///< words of a token's distribution
  void fields(core::FieldList& f);
};

/// A word and its share of a distribution.
struct WordShare {
  std::uint32_t word = 0;
  float share = 0;
  bool operator==(const WordShare&) const = default;
};

/// Hits of one query as words: the softmax of score / temperature over at most k hits other than
/// row `own`, summed by label. The `keep` largest shares, of equal ones the lower word first; what
/// is left out is the rest to 1. Empty where nothing was found. Rows, scores and labels as Hits'.
std::vector<WordShare> word_shares(std::span<const std::int64_t> rows,
                                   std::span<const float> scores,
                                   std::span<const std::int32_t> labels, std::int64_t own,
                                   std::int64_t k, double temperature, std::int64_t keep);

/// The store's row of each token of the data, -1: none (nothing stands before it). Throws
/// Error{bad_data} unless the store holds this text, whole, with these tokens as labels.
std::vector<std::int64_t> rows_of(const Datastore& store, const shard::Dataset& data);

/// Whether these words and their shares are a distribution, or nothing at all: words below
/// `vocabulary`, none named twice, shares that add up to at most 1.
bool is_distribution(std::span<const float> words, std::span<const float> shares,
                     std::uint64_t vocabulary);

/// The header of targets: vectors of `keep` words, then of as many shares; what is not used is 0.
shard::Header targets_header(const TargetOptions& options);
inline constexpr const char* kTargetsProgram = "build-targets";
/// What they were made with, of which text and store.
core::OrderedJson targets_provenance(const Datastore& store, const shard::Dataset& data,
                                     const TargetOptions& options);

/// A vector a token of the data. `progress` is told the tokens so far, and may throw to stop.
/// Throws as rows_of() and Datastore::search().
void write_targets(const Datastore& store, const shard::Dataset& data, const TargetOptions& options,
                   shard::Writer& out, const std::function<void(std::uint64_t)>& progress);

}  // namespace store
