#pragma once
// Attention of one query over a row's pages.
// Angles by which places turn pairs of channels (nn/layers/positions.h).

#include "infer/decode/decode_kernels.h"
#include "infer/decode/paged_rows.h"

namespace infer {

/// Slots of a row that a query sees, and the range of a slot's floats for one head.
struct Seen {
  std::size_t row;
  std::int64_t begin, end;     ///< tokens [begin, end); not empty
  std::int64_t offset, width;  ///< of the head
  std::int64_t part = 0;       ///< index of the keys in the slots; the values are the next part
};

/// Writes the head's scores, scale q . k, to scores[0, end - begin).
inline void paged_scores(
    const PagedRows& rows, const Seen& seen, const float* q, float scale, float* scores) {
  PagedRows::each_piece(seen.begin, seen.end, [&](std::int64_t first, std::int64_t n) {
    attention_scores(q, rows.slot(seen.row, first, seen.part) + seen.offset, rows.width(), n,
        seen.width, scale, scores + first - seen.begin);
  });
}

/// Computes out (width) = softmax(scores) values; overwrites scores with the weights.
inline void paged_values(const PagedRows& rows, const Seen& seen, float* scores, float* out) {
  softmax(scores, seen.end - seen.begin);
  std::fill_n(out, seen.width, 0.0f);
  PagedRows::each_piece(seen.begin, seen.end, [&](std::int64_t first, std::int64_t n) {
    add_weighted(scores + first - seen.begin,
        rows.slot(seen.row, first, seen.part + 1) + seen.offset, rows.width(), n, seen.width, out);
  });
}

/// Score buffers, one for each thread.
class ScoreBuffers {
 public:
  void fit(std::int64_t threads, std::int64_t longest) {
    own_.resize(static_cast<std::size_t>(threads));
    for (auto& own : own_)
      if (own.size() < static_cast<std::size_t>(longest))
        own.resize(2 * static_cast<std::size_t>(longest));
  }
  float* of(std::int64_t thread) { return own_[static_cast<std::size_t>(thread)].data(); }

 private:
  std::vector<std::vector<float>> own_;
};

struct Turns {
  std::vector<double> frequency = {};  ///< of each pair
  double length = 1;                   ///< what turned vectors are multiplied by

  /// Cosines of a place's angles, then sines, as turn_pairs takes them.
  void at(std::int64_t position, float* cos) const {
    for (std::size_t pair = 0; pair < frequency.size(); ++pair) {
      const double angle = static_cast<double>(position) * frequency[pair];
      cos[pair] = static_cast<float>(length * std::cos(angle));
      cos[frequency.size() + pair] = static_cast<float>(length * std::sin(angle));
    }
  }
};

}  // namespace infer
