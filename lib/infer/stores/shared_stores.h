#pragma once
// Datastores distributed over ranks: each rank opens some stores and searches them for all ranks.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "infer/stores/stores.h"
#include "ranks/group.h"

namespace infer {

/// Returns the results that one process with all stores would find, stores of rank 0 first.
/// Searches are collective: all ranks search together and make no other collective calls meanwhile.
/// A rank without further queries calls finish().
class SharedStores : public Stores {
 public:
  void finish() const override;

 private:
  friend std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
                                                    const model::Loaded& loaded,
                                                    std::shared_ptr<ranks::Group> group);
  /// `stores` are in the order of ranks; `counts` has the number of stores of each rank.
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
  std::int64_t first_ = 0;  // index of this rank's first store
  mutable std::mutex one_;  // one search of this rank at a time
};

/// Opens this rank's folders and exchanges the facts of the stores with other ranks. Collective.
/// Throws Error{usage} if no rank has stores, the errors of Stores, and Error{rank_lost}.
std::shared_ptr<const Stores> share_stores(const std::vector<std::string>& folders,
                                           const model::Loaded& loaded,
                                           std::shared_ptr<ranks::Group> group);

}  // namespace infer
