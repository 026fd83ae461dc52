#pragma once
// Builds and searches datastores: keys of a model's contexts, and the token after each (man 5
// store).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/options.h"

namespace store {
class Store;
}

namespace tessera {

/// Builds a datastore of texts or shards in `folder`, with the model of a folder or GGUF file. An
/// interrupted build resumes when it is called again. `options`: those of build-datastore(1).
/// Throws Error{64} for options that contradict each other, Error{65} for texts that do not fit the
/// model, and the errors of Model.
void build_store(const std::string& model, const std::vector<std::string>& files,
    const std::string& folder, const Options& options = {});

/// A Store is an open datastore. Copies share it. Thread safe.
class Store {
 public:
  /// Opens a folder. Throws Error{66} if it is no store or is incomplete, and Error{65} for damage.
  explicit Store(const std::string& folder);

  std::int64_t size() const;   ///< number of entries
  std::int64_t width() const;  ///< float32 numbers of a query

  /// The k nearest entries of n queries, best first, shape (n, k). An absent one has id -1.
  struct Hits {
    std::vector<std::int64_t> ids;     ///< number of the entry in the store
    std::vector<float> scores;         ///< q.k, or -|q - k|^2 in a store of metric l2
    std::vector<std::int32_t> tokens;  ///< the token after the entry's context
  };
  /// Finds the nearest entries of `queries`, shape (n, width()). Throws Error{64} for a k that is
  /// not 1 to 65,536, and Error{65} for queries that are not finite.
  Hits search(std::span<const float> queries, std::int64_t k) const;

 private:
  std::shared_ptr<const store::Store> store_;
};

}  // namespace tessera
