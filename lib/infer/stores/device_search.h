#pragma once
// The nearest keys of a store by looking at all of them, on a device.
//
// Blocks of queries and keys are multiplied. The best k rows of a block are in its best k groups of
// rows that follow each other, by the best of each, so that only those are looked at one by one;
// what is kept is a number a row, its score above its number, so that equal scores have an order.
// All of it is torch's operators, and the host waits once, for the result.

#include <cstdint>
#include <functional>
#include <span>

#include "nn/base/torch.h"
#include "store/datastore.h"
#include "store/exact_search.h"
#include "store/key_search.h"

namespace infer {

/// What a search may take of a device's memory, in bytes.
struct DeviceRoom {
  std::int64_t keys;  ///< a store's, which stay there; larger ones come for each search
  std::int64_t blocks = 1LL << 30;  ///< of keys and scores that are worked on
  /// Fewer queries do not have keys come: the processors read them faster.
  std::int64_t few = 32;
};
/// Half of what the device has for keys, and a little for blocks; all it takes where it is not
/// known what it has.
DeviceRoom device_room(torch::Device device);

/// What store::ExactSearch finds, scores to rounding. Keys are float16 there, products and sums
/// float32.
class DeviceSearch : public store::KeySearch {
 public:
  /// keys (N, width), row after row, N below 2^32; they must outlive it. Those for which there is
  /// room are copied now.
  DeviceSearch(std::span<const store::Half> keys, std::int64_t width, store::Metric metric,
               torch::Device device, const DeviceRoom& room);

  void search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
              std::span<std::int64_t> ids, std::span<float> scores) const override;

  /// Bytes of keys that are there; 0: they come for each search.
  std::int64_t resident_bytes() const;

 private:
  torch::Tensor best(const torch::Tensor& queries, std::int64_t k) const;
  void for_each_block(
      const std::function<void(std::int64_t first, const torch::Tensor& keys)>& body) const;
  torch::Tensor keys_;   // (N, width) float16, as they are mapped
  torch::Tensor there_;  // the same on the device; undefined: there is no room
  store::Metric metric_;
  torch::Device device_;
  std::int64_t block_bytes_, block_rows_, few_;
  store::ExactSearch here_;
};

/// The store's keys are looked at on the device from now on, unless it has an index; what stays
/// there is taken from the room.
void search_on(store::Datastore& store, torch::Device device, DeviceRoom& room);

}  // namespace infer
