#pragma once
// Reads a teacher's targets (build-targets) for training.

#include "nn/memory/joint_loss.h"
#include "shard/dataset.h"

namespace train {

struct Row;

/// A shard of targets. Thread safe.
class TargetShard {
 public:
  /// Throws Error{bad_data} with both names unless the shard at `path` has the targets of `data`.
  TargetShard(const std::string& path, const shard::Dataset& data);

  /// Returns the distributions for the rows' targets, padded to `steps` for each row. Throws
  /// Error{bad_data} for an invalid distribution over the data's vocabulary.
  nn::Teachers read(const std::vector<Row>& rows, std::int64_t steps) const;
  core::Digest fingerprint() const { return targets_.fingerprint(); }

 private:
  shard::Dataset targets_;
  std::uint64_t vocabulary_;
};

}  // namespace train
