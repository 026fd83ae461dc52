#pragma once
// Ranks that share a micro-batch: each has some of its rows, and all see the keys of all.

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/base/torch.h"
#include "ranks/group.h"

namespace ranks {

/// Whose losses a key learns from.
enum class KeyGradient {
  all,  ///< those of all ranks, as if one process had the micro-batch
  own,  ///< its own rank's, as fairseq's gathered memories do
};

/// `size` neighbours of a group: ranks [first, first + size). Every rank is in one team.
class Team {
 public:
  /// Throws Error{usage} where the group cannot be cut into such teams.
  Team(std::shared_ptr<Group> group, std::int64_t size);

  std::int64_t size() const { return size_; }
  /// This rank's place in its team, and its team's among the teams.
  std::int64_t member() const { return group_->rank() - first_; }
  std::int64_t number() const { return first_ / size_; }
  std::int64_t teams() const { return group_->size() / size_; }

  /// This member's rows where the team shares `rows`: [begin, end), which may be empty.
  std::int64_t begin(std::int64_t rows) const { return cut(member(), rows); }
  std::int64_t end(std::int64_t rows) const { return cut(member() + 1, rows); }

  /// The keys of `rows` rows, T of each: (rows T, d), from this member's own rows' (n T, d). Those
  /// of others are float32 constants; in the backward pass, which all members take together, the
  /// others' gradients of the own keys come back and are added, member 0's first. `T` is `steps`.
  torch::Tensor gather(const torch::Tensor& own, std::int64_t rows, std::int64_t steps,
                       KeyGradient gradient) const;

 private:
  std::int64_t cut(std::int64_t member, std::int64_t rows) const { return member * rows / size_; }

  std::shared_ptr<Group> group_;
  std::int64_t size_, first_;
};

}  // namespace ranks
