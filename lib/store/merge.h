#pragma once
// One store of those that hold the parts of a text.

#include <string>
#include <vector>

#include "store/builder.h"
#include "store/manifest.h"

namespace store {

/// Makes in `folder` the store that one process makes of the whole text, byte by byte, of the
/// stores of all its parts, in any order; `index` and `reduction` as in Plan. Stopped at any
/// moment, the same call goes on; done, it has nothing to do. Throws Error{usage} naming a part
/// that is missing, given twice, of another store or no part, or one that documents were removed
/// from; Error{bad_data} naming one that is damaged; and as Datastore, Builder and `watch` do.
Manifest merge(const std::vector<std::string>& parts, const std::string& folder,
               const std::string& index, const Watch& watch = {}, const Reduction& reduction = {});

}  // namespace store
