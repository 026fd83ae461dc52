#pragma once
// Checks that the processes of a run have equal settings.

#include "core/json.h"
#include "ranks/group.h"

namespace ranks {

/// Throws Error{usage} on all ranks if a rank's `own` (an object) differs from rank 0's; names the
/// first differing key, the rank and both values.
void expect_agreement(Group& group, const core::OrderedJson& own);

/// Throws Error{bug} on all ranks if a rank's `digest` of `what` differs from rank 0's; names the
/// first such rank.
void expect_same_digest(Group& group, const std::string& what, const std::string& digest);

}  // namespace ranks
