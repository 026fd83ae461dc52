#pragma once
// Several datastores searched together.

#include "infer/stores/neighbours.h"
#include "model/folder.h"
#include "shard/dataset.h"
#include "store/datastore.h"

namespace infer {

/// A set of datastores. Thread safe.
class Stores {
 public:
  /// Takes opened stores of a model with keys of `width`. Empty fingerprints (hex) are not
  /// compared; `name` is the model's, for messages. Throws Error{bad_data} with both fingerprints
  /// for a store of another model or tokenizer; Error{usage} for stores of different metrics, l2
  /// keys of different widths, and stores that contain overlapping texts, whose entries would count
  /// twice.
  Stores(std::vector<std::unique_ptr<const store::Store>> stores, const std::string& model,
      const std::string& tokenizer, const std::string& name, std::int64_t width,
      std::int64_t vocabulary);
  /// Takes opened stores and the facts of a loaded model.
  Stores(std::vector<std::unique_ptr<const store::Store>> stores, const model::Loaded& loaded);
  virtual ~Stores() = default;
  Stores(Stores&&) = delete;

  /// Searches for queries (R, width) of any float dtype and device. Entries of texts and shards
  /// with the fingerprints `own` are excluded and take no places among the k, so that a scored text
  /// does not retrieve from itself.
  Neighbours search(const torch::Tensor& queries, std::int64_t k, std::int64_t nprobe, bool rescore,
      const shard::Fingerprints& own = {}) const;

  /// Returns the best k of the entries rows[i] for query i of queries (R, width), by exact scores:
  /// (R, k), in the format of search().
  Neighbours at(const torch::Tensor& queries, std::span<const std::span<const StoreRow>> rows,
      std::int64_t k) const;

  /// Throws Error{usage} that names the first store without keys to compute scores from.
  void expect_rescorable() const;
  /// Throws Error{usage} that names the first store without support for pointers.
  void expect_followable() const;
  std::size_t size() const { return stores_.size(); }
  const store::Store& operator[](std::size_t i) const { return *stores_[i]; }
  std::int64_t width() const { return width_; }
  /// Returns the prefixes of the stores' fingerprints, joined by "+".
  std::string signature() const;
  /// Returns whether a store has entries of one of these texts or shards.
  bool hold(const shard::Fingerprints& texts) const;
  /// Returns the names of the stores for which search() may keep entries of `own`, because they
  /// were merged with entries of other texts.
  std::vector<std::string> that_merged(const shard::Fingerprints& own) const;
  /// Announces that this process makes no more searches.
  virtual void finish() const {}

 private:
  /// Searches every store.
  virtual std::vector<store::Hits> search_all(
      std::span<const float> queries, const store::SearchOptions& options) const;
  /// Searches one store.
  virtual store::Hits search_one(
      std::size_t store, std::span<const float> queries, const store::SearchOptions& options) const;
  void hide(std::size_t store, const shard::Fingerprints& own, std::span<const float> queries,
      store::SearchOptions options, store::Hits& hits) const;
  Neighbours neighbours(std::size_t store, store::Hits hits) const;
  std::vector<std::unique_ptr<const store::Store>> stores_;
  std::int64_t width_, vocabulary_;
};

/// Opens each folder. A store without an index is searched on the device of `like`, a weight of the
/// model.
std::vector<std::unique_ptr<const store::Store>> open_each(
    const std::vector<std::string>& folders, const torch::Tensor& like);

/// Takes one opened store for the model, which is searched as one of open_each() is.
std::shared_ptr<const Stores> store_alone(
    std::unique_ptr<store::Datastore> store, const model::Loaded& loaded);

/// Opens the folders for the model; returns null if there are none. Throws the errors of Stores
/// and store::Datastore.
std::shared_ptr<const Stores> open_stores(
    const std::vector<std::string>& folders, const model::Loaded& loaded);

}  // namespace infer
