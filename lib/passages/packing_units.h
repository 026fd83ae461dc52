#pragma once
// Divides data into units (segments, passages, documents or pairs) and lists their terms.

#include "passages/bm25.h"
#include "shard/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace passages {

/// A PackingUnit is the definition of a unit. segment: `length` consecutive tokens from the start
/// of the data, across document boundaries; the last segment is shorter. passage: `length` tokens
/// of one document (passage_index.h); 0 means the whole document. document: each document of the
/// data. pair: the target of each pair of the data.
struct PackingUnit {
  std::string name = "segment";
  std::uint64_t length = 512;
};

/// Throws Error{usage} unless the data has such units.
void expect_units(const shard::Dataset& data, const PackingUnit& unit);
std::uint64_t count_units(const shard::Dataset& data, const PackingUnit& unit);

/// Returns, for each unit, the range of units, including itself, that share a document (or pair)
/// with it. Since units cross documents, two units of a range need not share a document with each
/// other.
std::vector<UnitRange> units_of_same_documents(const shard::Dataset& data, const PackingUnit& unit);

/// AnalyzedUnits is a part of the units, in order: its term strings, and each unit's list of (index
/// into `strings`, count).
struct AnalyzedUnits {
  std::vector<std::string> strings;
  std::vector<std::vector<TermCount>> lists;
};

/// Decodes and analyses the units (analysis.h) and passes them to `take` in parts, in order, and
/// independently of `jobs`. `end_of_document` is not text.
void analyze_units(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    const std::function<void(AnalyzedUnits&)>& take);

/// Returns the terms of all units; terms are numbered in order of appearance. `progress` receives
/// the number of units done. Sets `strings`, if not null, to the terms in order of their numbers.
TermLists list_terms(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    std::uint64_t memory, const std::function<void(std::uint64_t)>& progress,
    std::vector<std::string>* strings = nullptr);

}  // namespace passages
