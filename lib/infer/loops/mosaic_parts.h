#pragma once
// Decoding of the memory units of Memory Mosaics (nn/arch/mosaic_units.h).

#include <string>

#include "infer/decode/decode_weights.h"
#include "infer/loops/paged_attention.h"
#include "infer/loops/part.h"
#include "nn/arch/mosaic_units.h"

namespace infer {

/// Scalars of a unit for each head, after transformation.
struct UnitFactors {
  const float *decay, *key_scale, *value_scale;
};

/// Stores the pairs of each row. A row's state is the leaky key averages, the last key and the last
/// value, (d) each. Token t completes the pair in its slot, so a row's first token has no pair.
class ContextualPart : public StatePart {
 public:
  ContextualPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
                 std::int64_t heads);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  void head(const Run& run, std::int64_t head, float* scores);

  std::int64_t d_, heads_, width_;
  Affine maps_, project_;
  UnitFactors factors_;
  const float* mix_;      // (heads)
  Buffer mapped_, read_;  // (n, 2 d): inputs of keys, values; (n, d)
  ScoreBuffers scores_;
};

/// A row's state is its leaky key averages, (d).
class PersistentPart : public StatePart {
 public:
  PersistentPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
                 std::int64_t heads, std::int64_t slots);
  std::int64_t out() const override { return d_; }
  void prepare(const Chunk& chunk) override;
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override;

 private:
  void head(const Chunk& chunk, std::int64_t head);

  std::int64_t d_, heads_, width_, slots_;
  Affine map_, project_;
  UnitFactors factors_;
  std::vector<PackedMatrix> keys_, values_;  // for each head: (slots, width), (width, slots)
  Buffer mapped_, asking_, weights_, read_;  // (n, d), heads (n, width), heads (n, slots), (n, d)
};

}  // namespace infer
