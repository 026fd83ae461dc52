#pragma once
// Products with weights that stay in the blocks of a GGUF file (model/gguf/gguf_blocks.h).
//
// In each format, 32 adjacent weights of a row are a group w_i = scale n_i + least, with whole
// numbers n_i of at most 13 bits. Inputs are rounded to 16 bits (Q6_K: 15), with one scale a group,
// the largest magnitude / 32767 (16383): x_i = step q_i. A product is the sum over the groups of
//   scale step sum_i(n_i q_i) + least step sum_i(q_i),
// where both sums over i are exact.

#include "model/gguf/gguf_blocks.h"

namespace infer {

/// Returns whether the program has products with blocks; without them, each product unpacks them.
bool has_block_kernels();

struct BlockFormat;
/// Returns the format of a type by ggml's number; null: its blocks must be unpacked.
const BlockFormat* block_format(std::uint32_t type);

/// A matrix (out, in) in one or several parts, which may be of different formats. `in` is a
/// multiple of their blocks. Thread safe.
class BlockMatrix {
 public:
  BlockMatrix(const std::vector<model::GgufRows>& parts, std::int64_t in);
  std::int64_t out() const { return out_; }
  /// Unpacks one row to `in` floats.
  void row(std::int64_t index, float* out) const;
  /// Computes y[r][o - begin] = x[r] . weight[o] for the outputs [begin, end); x (rows, in) has row
  /// stride ldx, y row stride ldy. The result of a row does not depend on `rows`, bit for bit.
  void multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
      std::int64_t end, float* y, std::int64_t ldy) const;

 private:
  struct Part {
    model::GgufRows of;
    const BlockFormat* format;
    std::size_t row_bytes;
  };
  struct At {
    const Part* part;
    const std::uint8_t* row;
    std::int64_t left;  // rows of the part from this one on
  };
  At at(std::int64_t index) const;

  std::vector<Part> parts_;
  std::int64_t out_ = 0, in_;
};

}  // namespace infer
