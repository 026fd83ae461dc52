#pragma once
// Several datastores, searched as one.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "infer/stores/neighbours.h"
#include "model/folder.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"
#include "store/store.h"

namespace infer {

/// Thread safe.
class Stores {
 public:
  /// Of this model's keys of this width. Fingerprints (hex) that are empty are not compared;
  /// `name` is the model's, for messages. Throws Error{bad_data} naming both fingerprints for a
  /// store of another model or tokenizer, Error{usage} for stores of different metrics, for l2 keys
  /// of different widths and for two that hold the same text, or parts of it that overlap, whose
  /// entries would count twice; and as store::Datastore does.
  Stores(const std::vector<std::string>& folders, const std::string& model,
         const std::string& tokenizer, const std::string& name, std::int64_t width,
         std::int64_t vocabulary);
  /// The same of stores that are opened.
  Stores(std::vector<std::unique_ptr<const store::Store>> stores, const std::string& model,
         const std::string& tokenizer, const std::string& name, std::int64_t width,
         std::int64_t vocabulary);
  /// The same, for a model that is loaded.
  Stores(std::vector<std::unique_ptr<const store::Store>> stores, const model::Loaded& loaded);
  virtual ~Stores() = default;
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;

  /// queries (R, width) of any float dtype and device. Without the entries of the texts
  /// and shards with the fingerprints `own`, which take no places: a text that is scored sees
  /// other texts only (local and long are its own).
  Neighbours search(const torch::Tensor& queries, std::int64_t k, std::int64_t nprobe, bool rescore,
                    const shard::Fingerprints& own = {}) const;

  /// Of the entries rows[i] the best k for query i of queries (R, width), by exact scores: (R, k),
  /// as search() has it.
  Neighbours at(const torch::Tensor& queries, std::span<const std::span<const StoreRow>> rows,
                std::int64_t k) const;

  /// Throws Error{usage} for the first whose rows cannot be followed.
  void expect_followable() const;
  std::size_t size() const { return stores_.size(); }
  const store::Store& operator[](std::size_t i) const { return *stores_[i]; }
  std::int64_t width() const { return width_; }
  /// The beginnings of the stores' fingerprints, with + between them.
  std::string signature() const;
  /// Whether a store has entries of one of these texts or shards.
  bool hold(const shard::Fingerprints& texts) const;
  /// Names of the stores of which search() may not leave out all entries of `own`, because they
  /// were merged with entries of other texts.
  std::vector<std::string> that_merged(const shard::Fingerprints& own) const;
  /// There are no more queries.
  virtual void finish() const {}

 private:
  /// What each store finds.
  virtual std::vector<store::Hits> search_all(std::span<const float> queries,
                                              const store::SearchOptions& options) const;
  /// What one of them finds.
  virtual store::Hits search_one(std::size_t store, std::span<const float> queries,
                                 const store::SearchOptions& options) const;
  void hide(std::size_t store, const shard::Fingerprints& own, std::span<const float> queries,
            store::SearchOptions options, store::Hits& hits) const;
  Neighbours neighbours(std::size_t store, store::Hits hits) const;
  std::vector<std::unique_ptr<const store::Store>> stores_;
  std::int64_t width_, vocabulary_;
};

/// Opens each folder. Of an exact store the keys are looked at on the device of `like`, a model's
/// weight.
std::vector<std::unique_ptr<const store::Store>> open_each(const std::vector<std::string>& folders,
                                                           const torch::Tensor& like);

/// Opens the folders for the model; null if there are none. Throws as Stores does.
std::shared_ptr<const Stores> open_stores(const std::vector<std::string>& folders,
                                          const model::Loaded& loaded);

}  // namespace infer
