#pragma once
// Merges the stores of the parts of a text into one store.

#include "store/builder.h"

namespace store {

/// Makes in `folder` the store that a single process would make of the whole text, byte for byte,
/// from the stores of all its parts in any order; `index` and `reduction` are as in Plan. If
/// interrupted, an equal call resumes; once complete, it does nothing. Throws Error{usage} for a
/// missing or duplicate part, a part of another store, a store that is not a part, and a part from
/// which documents were removed; Error{bad_data} for a corrupt part; and as Datastore, Builder and
/// `watch` do.
Manifest merge(const std::vector<std::string>& parts, const std::string& folder,
    const std::string& index, const ProgressCallback& watch = {}, const Reduction& reduction = {});

}  // namespace store
