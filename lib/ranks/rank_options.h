#pragma once
// Options for programs that run as several processes.

#include "core/options.h"
#include "ranks/group.h"

namespace ranks {

struct RankOptions {
  std::string ranks = "none";
  std::string timeout = "10:00";
  void fields(core::FieldList& f);
  bool any() const { return ranks != "none"; }
};

/// Option that selects the library which sums gradients of GPUs over ranks.
struct BackendOptions {
  std::string backend = "auto";
  void fields(core::FieldList& f);
};

/// Connects the ranks of `group` for tensors on `device`, this rank's (Group::connect()). auto: by
/// NCCL if `device` is a GPU and all ranks have NCCL. Returns a line for the user if auto cannot
/// use NCCL, else "". Collective. Throws Error{usage} for nccl without a GPU;
/// Error{unavailable}.
std::string connect(Group& group, const BackendOptions& options, torch::Device device);

/// Joins the processes that the launcher started (core/launcher.h), when all are present; without
/// --ranks launcher returns a group of this process. `folder` is visible to all ranks and contains
/// the rendezvous file; created if needed. Throws Error{usage}, and Error{rank_lost} if not all
/// processes join in time.
std::shared_ptr<Group> join(const RankOptions& options, const std::string& folder);
/// Joins the ranks of a program whose output is a file or stdout: the rendezvous file is beside the
/// output, or in the current folder.
std::shared_ptr<Group> join_beside(const RankOptions& options, const std::string& output);

/// Throws Error{usage} for inputs that several ranks cannot read: stdin and pipes.
void expect_files(const std::vector<std::string>& files);

}  // namespace ranks
