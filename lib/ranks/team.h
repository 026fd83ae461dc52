#pragma once
// Ranks that share a micro-batch: each processes some rows, and all see the keys of all rows.

#include "ranks/group.h"

namespace ranks {

/// Losses whose gradients reach a key.
enum class KeyGradient {
  all,  ///< losses of all ranks, as if one process had the micro-batch
  own,  ///< losses of the key's own rank, as fairseq's gathered memories do
};

/// Consecutive ranks [first, first + size) of a group. Every rank is in one team.
class Team {
 public:
  /// Throws Error{usage} if the group cannot be divided into teams of this size.
  Team(std::shared_ptr<Group> group, std::int64_t size);

  std::int64_t size() const { return size_; }
  /// member(): this rank's index in its team. number(): the team's index.
  std::int64_t member() const { return group_->rank() - first_; }
  std::int64_t number() const { return first_ / size_; }
  std::int64_t teams() const { return group_->size() / size_; }

  /// Range [begin, end), possibly empty, of this member's rows when the team shares `rows`.
  std::int64_t begin(std::int64_t rows) const { return cut(member(), rows); }
  std::int64_t end(std::int64_t rows) const { return cut(member() + 1, rows); }

  /// Gathers the keys of `rows` rows with T = `steps` each: (rows T, d), from this member's own
  /// rows' (n T, d). Keys of other members are float32 constants. In the backward pass, which is
  /// collective, the gradients of the own keys from other members are added, member 0's first.
  torch::Tensor gather(
      const torch::Tensor& own, std::int64_t rows, std::int64_t steps, KeyGradient gradient) const;

 private:
  std::int64_t cut(std::int64_t member, std::int64_t rows) const { return member * rows / size_; }

  std::shared_ptr<Group> group_;
  std::int64_t size_, first_;
};

}  // namespace ranks
