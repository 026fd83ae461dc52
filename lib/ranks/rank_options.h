#pragma once
// Whether a program is one of several processes, and how long they wait for each other.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "ranks/group.h"

namespace ranks {

struct RankOptions {
  std::string ranks = "none";
  std::string timeout = "10:00";
  void fields(core::FieldList& f);
  bool any() const { return ranks != "none"; }
};

/// The processes that the launcher started (core/launcher.h), once all are there; without
/// --ranks launcher this one alone. `folder`: one that all see, for ranks that meet by a file; made
/// if need be. Throws Error{usage}, Error{rank_lost} if not all come in time.
std::shared_ptr<Group> join(const RankOptions& options, const std::string& folder);
/// The same of a program whose output is a file, or stdout: those that meet by a file do so beside
/// it, or in the current folder.
std::shared_ptr<Group> join_beside(const RankOptions& options, const std::string& output);

/// Throws Error{usage} for what several ranks cannot all read: stdin, pipes.
void expect_files(const std::vector<std::string>& files);

}  // namespace ranks
