#pragma once
// The targets of a teacher (build-targets), as train reads them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/memory/target_loss.h"
#include "shard/dataset.h"

namespace train {

struct Row;

/// Thread safe.
class TargetShard {
 public:
  /// Throws Error{bad_data} naming both unless the shard at `path` has the targets of `data`.
  TargetShard(const std::string& path, const shard::Dataset& data);

  /// Of each target of the rows, `steps` a row: the rest is padding. Throws Error{bad_data} for
  /// what is no distribution over the data's words.
  nn::Teachers read(const std::vector<Row>& rows, std::int64_t steps) const;
  core::Digest fingerprint() const { return targets_.fingerprint(); }

 private:
  shard::Dataset targets_;
  std::uint64_t vocabulary_;
};

}  // namespace train
