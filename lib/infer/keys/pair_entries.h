#pragma once
// Memory entries of sentence pairs: decoder states with the target tokens that they predict
// (kNN-MT, Khandelwal et al. 2021; TRIME).

#include <cstdint>
#include <optional>
#include <vector>

#include "infer/keys/entries.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

/// A PairWalk yields an entry for each token of each target, including its end-of-document token,
/// in the order of the shard. Each pair is a document of the store, with the pair's number. Pairs
/// of similar length share a forward pass of at most `batch_tokens` target tokens including
/// padding; a block contains the pairs of about four forward passes.
class PairWalk : public EntryWalk {
 public:
  /// `data` must outlive the walk. Throws the errors of check_pairs().
  PairWalk(nn::Model& model, const shard::Dataset& data, std::int64_t batch_tokens,
           torch::Device device);
  std::optional<EntryBlock> next() override;
  void resume(std::uint64_t entries, nn::State state) override;
  std::uint64_t count() const override;
  std::vector<std::int64_t> first_of_documents() const override;

 private:
  std::vector<std::uint64_t> group_sizes() const override;
  std::int64_t block_end(std::int64_t first) const;
  std::uint64_t entries_in(std::int64_t first, std::int64_t end) const;
  const shard::Dataset& data_;
  std::int64_t batch_tokens_;
  torch::Device device_;
  std::int64_t next_pair_ = 0;
};

}  // namespace infer
