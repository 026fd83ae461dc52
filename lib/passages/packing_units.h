#pragma once
// The units that are packed, segments, documents or pairs, and their terms.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "passages/bm25.h"
#include "passages/term_lists.h"
#include "shard/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace passages {

/// segment: `length` tokens from the start of the data on, whatever documents they cross; the last
/// is shorter. passage: `length` tokens of a document (passage_cuts.h), 0: all of it. document:
/// each of the data. pair: each of the data, of which only the target is read.
struct PackingUnit {
  std::string name = "segment";
  std::uint64_t length = 512;
};

/// Throws Error{usage} unless the data have such units.
void expect_units(const shard::Dataset& data, const PackingUnit& unit);
std::uint64_t count_units(const shard::Dataset& data, const PackingUnit& unit);

/// Of each unit, the units that share a document (or pair) with it, itself among them. Units cross
/// documents, so one of these may share none with another.
std::vector<UnitRange> units_of_same_documents(const shard::Dataset& data, const PackingUnit& unit);

/// A part of the units in their order: the strings of its terms, and each unit's list of (index
/// into `strings`, count).
struct AnalyzedUnits {
  std::vector<std::string> strings;
  std::vector<std::vector<TermCount>> lists;
};

/// Decodes the units, analyses them (text/analysis.h), and hands them on in parts, in their order
/// and the same whatever `jobs`. `end_of_document` is no text.
void analyze_units(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
                   std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
                   const std::function<void(AnalyzedUnits&)>& take);

/// All of it as term lists; terms are numbered as they appear. `progress` is told the units done.
/// `strings`, if not null, gets the terms in the order of their numbers.
TermLists list_terms(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
                     std::optional<std::uint32_t> end_of_document, const PackingUnit& unit,
                     int jobs, std::uint64_t memory,
                     const std::function<void(std::uint64_t)>& progress,
                     std::vector<std::string>* strings = nullptr);

}  // namespace passages
