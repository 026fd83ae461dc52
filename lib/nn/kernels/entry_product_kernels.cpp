#include "nn/kernels/entry_product_kernels.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/thin_product.h"

namespace nn {
namespace {

// Terms of a sum computed at once: this number of rows of a factor fits the second-level cache.
constexpr std::int64_t kDepth = 256;

std::vector<float> room(std::int64_t rows, std::int64_t columns) {
  return std::vector<float>(static_cast<std::size_t>(rows * columns));
}

}  // namespace

void entry_scores(const Matrix& queries, const Matrix& keys, std::int64_t begin, std::int64_t end,
    const MatrixOut& scores) {
  const std::int64_t width = queries.columns;
  auto turned = room(width, kEntryTile), last = room(queries.rows, kEntryTile);
  for (std::int64_t tile = begin; tile < end; tile += kEntryTile) {
    const std::int64_t n = std::min(kEntryTile, end - tile);
    for (std::int64_t j = 0; j < n; ++j) {
      const float* const key = keys.row(tile + j);
      for (std::int64_t c = 0; c < width; ++c)
        turned[static_cast<std::size_t>(c * kEntryTile + j)] = key[c];
    }
    const bool whole = n == kEntryTile;
    float* const out = whole ? scores.data + tile : last.data();
    // (R, width) (width, tile) -> (R, tile)
    thin::multiply(queries.rows, kEntryTile, width, {queries.data, queries.stride, 1},
        turned.data(), kEntryTile, false, out, whole ? scores.stride : kEntryTile);
    for (std::int64_t i = 0; !whole && i < queries.rows; ++i)
      std::copy_n(out + i * kEntryTile, n, scores.row(i) + tile);
  }
}

void add_query_gradients(const Matrix& d, const Matrix& keys, std::int64_t begin, std::int64_t end,
    const MatrixOut& d_queries) {
  for (std::int64_t entry = 0; entry < keys.rows; entry += kDepth)
    thin::multiply(end - begin, keys.columns, std::min(kDepth, keys.rows - entry),
        {d.row(begin) + entry, d.stride, 1}, keys.row(entry), keys.stride, true,
        d_queries.row(begin), d_queries.stride);
}

void add_entry_gradients(const Matrix& d, const Matrix& queries, std::int64_t begin,
    std::int64_t end, const MatrixOut& d_keys) {
  // A tile of d is copied to contiguous memory: its rows in d are too far apart for the first-level
  // cache.
  auto dense = room(queries.rows, kEntryTile);
  for (std::int64_t tile = begin; tile < end; tile += kEntryTile) {
    const std::int64_t n = std::min(kEntryTile, end - tile);
    for (std::int64_t i = 0; i < queries.rows; ++i)
      std::copy_n(d.row(i) + tile, n, dense.data() + i * kEntryTile);
    // (tile, R) (R, width) -> (tile, width), added
    thin::multiply(n, queries.columns, queries.rows, {dense.data(), 1, kEntryTile}, queries.data,
        queries.stride, true, d_keys.row(tile), d_keys.stride);
  }
}

}  // namespace nn
