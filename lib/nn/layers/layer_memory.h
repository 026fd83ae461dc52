#pragma once
// The past of each layer, with a separate length per layer (Transformer-XL, SRU++): its inputs, or
// data computed from them.
//
// A call packs each row's real tokens to the front, so that layers see rows without gaps. A row's
// padding then follows its tokens and is never read.
//
//   State::tensors  "seen" (B) int64, on the CPU: tokens of the row since it was fresh
//                   NAME + ".memory" (B, C, d): the arguments of extend(), the newest last. C is at
//                   most the layer's length. A row that has seen fewer than C tokens has them at
//                   the end; earlier values are finite and meaningless.
// Parses the memory length of each layer.
// Packs rows: each row's real tokens come first, in order, and its padding last.

#include "nn/layers/kv_cache.h"

namespace nn {

class RealFirst {
 public:
  explicit RealFirst(const Batch& batch);

  /// pack() moves each row's real tokens of (B, T, ...) to the front; unpack() restores the order.
  torch::Tensor pack(const torch::Tensor& x) const;
  torch::Tensor unpack(const torch::Tensor& x) const;
  /// Returns the batch's inputs (B, T), packed, with id 0 for padding.
  torch::Tensor packed_ids(const Batch& batch) const;
  bool dense() const { return !order_.defined(); }       ///< no padding: packed as it is
  const torch::Tensor& count() const { return count_; }  ///< (B) int64, CPU: real tokens

 private:
  torch::Tensor count_;            // (B) int64
  torch::Tensor order_, inverse_;  // (B, T) int64; undefined where dense
};

/// Past inputs of layers, from this call and earlier ones.
class LayerPast {
 public:
  virtual ~LayerPast() = default;
  /// Returns the number of slots that extend() puts before x.
  virtual std::int64_t remembered(const std::string& name, std::int64_t length) const = 0;
  /// Appends x (B, T, d), the input of layer `name`, and returns (B, C + T, d): the past input,
  /// then x. Keeps the newest `length` of both. Call it once for each name in a call; d is constant
  /// for a name.
  virtual torch::Tensor extend(
      const std::string& name, const torch::Tensor& x, std::int64_t length) = 0;
  /// Returns the first valid slot of C remembered ones in each row: (B) int64; undefined if all
  /// slots are valid.
  virtual torch::Tensor first_valid(std::int64_t remembered) const = 0;
};

/// Past inputs for rows that grow with fixed operators on fixed memory: C equals the length from
/// the first call on, and no data are on the CPU. `kept` contains only NAME + ".memory".
class FixedLayerPast : public LayerPast {
 public:
  FixedLayerPast(const RingPlace& place, State& kept) : place_(place), kept_(kept) {}
  std::int64_t remembered(const std::string& /*name*/, std::int64_t length) const override {
    return length;
  }
  torch::Tensor extend(
      const std::string& name, const torch::Tensor& x, std::int64_t length) override;
  torch::Tensor first_valid(std::int64_t remembered) const override;

 private:
  const RingPlace& place_;
  State& kept_;
};

class LayerMemory : public RealFirst, public LayerPast {
 public:
  /// Resets the batch's fresh rows. With a null `state`, nothing is kept.
  LayerMemory(const Batch& batch, State* state);

  std::int64_t remembered(const std::string& name, std::int64_t length) const override;
  /// Requires packed x.
  torch::Tensor extend(
      const std::string& name, const torch::Tensor& x, std::int64_t length) override;
  /// Returns a tensor on the CPU.
  torch::Tensor first_valid(std::int64_t remembered) const override;

 private:
  State* state_;
  std::int64_t steps_;
  torch::Tensor seen_;  // (B) int64: before this call
};

/// Parses the memory length of each of `layers` layers, from the lowest to the highest, in tokens.
/// The text is a list with a number per layer, or one number for all ("512", "128,128,2304",
/// "none"), or these settings in any order:
///
///   place=PLACE   which layers are long: all, none, first:N, last:N, middle:N, or interleaved:N,
///                 the last layer of each of N groups (layers (i + 1) L / N - 1, rounded down)
///   long=M        length of long layers [0]; short=M: length of the others [0]
///   offset=K      interleaved: moves the long layers down by K layers [0]
///
/// For example "long=2304 short=128 place=interleaved:4" (Rae & Razavi 2020, section 3, which shows
/// the interleaving in a figure and does not define it). Lengths may end in K or M. Throws
/// Error{bad_config} that names layer-memory and the invalid setting.
std::vector<std::int64_t> parse_layer_memory(const std::string& pattern, std::int64_t layers);

}  // namespace nn
