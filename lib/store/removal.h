#pragma once
// Taking documents out of a store, for good.

#include <cstdint>
#include <string>
#include <vector>

#include "store/builder.h"

namespace store {

/// Writes a new generation without the documents (numbers from 0; the later ones move up, as their
/// rows do) and removes the files of the old one: their keys and labels are in no file afterwards,
/// and in the index neither. An index of inverted lists (IVF with Flat, SQ or PQ) is cut, any other
/// is filled anew; what training learned from all rows (centroids) stays. Killed at any moment, it
/// leaves the old store or the new. Returns what store.json records of each. Throws Error{usage}
/// for a document that is not there or if none would be left.
std::vector<Receipt> remove_documents(const std::string& folder,
                                      std::vector<std::int64_t> documents, const Watch& watch = {});

/// Reads every byte of a store: rows against their digest, labels against the vocabulary, and what
/// opening checks. Throws Error{bad_data} naming what is damaged.
void verify(const std::string& folder, const Watch& watch = {});

}  // namespace store
