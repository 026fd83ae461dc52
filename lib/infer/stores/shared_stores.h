#pragma once
// Datastores of several ranks, searched as one: each rank opens its own and searches them for all.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "infer/stores/stores.h"
#include "ranks/group.h"

namespace infer {

/// What a search finds is what one process with all the stores finds, those of rank 0 first. All
/// ranks search together, and nothing else meanwhile: one that has no more queries calls finish().
class SharedStores : public Stores {
 public:
  void finish() const override;

 private:
  friend std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
                                                    const model::Loaded& loaded,
                                                    std::shared_ptr<ranks::Group> group);
  /// Stores in the order of ranks; of each rank how many.
  SharedStores(std::vector<std::unique_ptr<const store::Store>> stores,
               std::vector<std::int64_t> counts, const model::Loaded& loaded,
               std::shared_ptr<ranks::Group> group);

  std::vector<store::Hits> search_all(std::span<const float> queries,
                                      const store::SearchOptions& options) const override;
  store::Hits search_one(std::size_t store, std::span<const float> queries,
                         const store::SearchOptions& options) const override;
  struct Asked;
  std::vector<Asked> ask(std::int64_t n, const store::SearchOptions& options) const;
  std::vector<store::Hits> answer(std::vector<Asked> asked, std::span<const float> queries) const;
  std::vector<store::Hits> search_own(const torch::Tensor& queries,
                                      const store::SearchOptions& options) const;

  std::shared_ptr<ranks::Group> group_;
  std::vector<std::int64_t> counts_;
  std::int64_t first_ = 0;  // of the stores, this rank's
  mutable std::mutex one_;  // search of this rank at a time
};

/// Opens this rank's folders; of others' stores it learns what they hold. All ranks call it. Throws
/// Error{usage} where it has none, as Stores does, and Error{rank_lost}.
std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
                                           const model::Loaded& loaded,
                                           std::shared_ptr<ranks::Group> group);

}  // namespace infer
