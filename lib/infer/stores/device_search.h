#pragma once
// Exact search for the nearest keys of a datastore on a device.
//
// The search multiplies blocks of queries and keys. The best k rows of a block lie in the best k
// groups of consecutive rows, ranked by each group's maximum, so only these groups are ranked row
// by row. Candidates are stored as one number a row, with the score in the bits above the row
// number, so that ties have a defined order. All operations are LibTorch operators, and the host
// waits once, for the result.

#include "nn/base/torch.h"
#include "store/datastore.h"

namespace infer {

/// Device memory available to searches, in bytes.
struct DeviceRoom {
  std::int64_t keys;  ///< keys kept on the device; larger key sets are uploaded for each search
  std::int64_t blocks = 1LL << 30;  ///< blocks of keys and scores during a search
  /// With fewer queries, keys are not uploaded: the CPU is faster.
  std::int64_t few = 32;
};
/// Returns half of the device's memory for keys, and a small part for blocks; unlimited key memory
/// if the device's memory is unknown.
DeviceRoom device_room(torch::Device device);

/// Returns the results of store::ExactSearch, with scores equal up to rounding. Keys are float16,
/// products and sums float32.
class DeviceSearch : public store::KeySearch {
 public:
  /// keys (N, width) are row-major, N < 2^32, and must outlive the object. Keys that fit into
  /// `room` are copied to the device here.
  DeviceSearch(std::span<const store::Half> keys, std::int64_t width, store::Metric metric,
      torch::Device device, const DeviceRoom& room);

  void search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
      std::span<std::int64_t> ids, std::span<float> scores) const override;

  /// Returns the bytes of keys on the device; 0: keys are uploaded for each search.
  std::int64_t resident_bytes() const;

 private:
  torch::Tensor best(const torch::Tensor& queries, std::int64_t k) const;
  void for_each_block(
      const std::function<void(std::int64_t first, const torch::Tensor& keys)>& body) const;
  torch::Tensor keys_;   // (N, width) float16, memory-mapped
  torch::Tensor there_;  // keys on the device; undefined: no room
  store::Metric metric_;
  torch::Device device_;
  std::int64_t block_bytes_, block_rows_, few_;
  store::ExactSearch here_;
};

/// Makes the store search its keys on the device, unless it has an index. Subtracts the memory used
/// from `room`.
void search_on(store::Datastore& store, torch::Device device, DeviceRoom& room);

}  // namespace infer
