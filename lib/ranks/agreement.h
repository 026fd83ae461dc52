#pragma once
// Processes of one run must have been told the same.

#include "core/json.h"
#include "ranks/group.h"

namespace ranks {

/// Throws Error{usage}, on all ranks, naming the first key of `own` (an object) in which a rank
/// differs from rank 0, that rank and both values.
void expect_agreement(Group& group, const core::OrderedJson& own);

/// Throws Error{bug}, on all ranks, naming the first rank whose `digest` of `what` is another than
/// rank 0's.
void expect_same_digest(Group& group, const std::string& what, const std::string& digest);

}  // namespace ranks
