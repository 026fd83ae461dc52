#pragma once
// One query's attention over what a row's pages hold.

#include <cstdint>
#include <vector>

#include "infer/decode/decode_kernels.h"
#include "infer/decode/paged_rows.h"

namespace infer {

/// The slots that a query of a row sees, and which of their floats are its head's.
struct Seen {
  std::size_t row;
  std::int64_t begin, end;     ///< tokens [begin, end); not empty
  std::int64_t offset, width;  ///< of the head
};

/// Keys are part 0, values part 1, `stride` floats apart. Writes the head's scores, scale q . k, to
/// scores[0, end - begin).
inline void paged_scores(const PagedRows& rows, const Seen& seen, std::int64_t stride,
                         const float* q, float scale, float* scores) {
  PagedRows::each_piece(seen.begin, seen.end, [&](std::int64_t first, std::int64_t n) {
    attention_scores(q, rows.slot(seen.row, first, 0) + seen.offset, stride, n, seen.width, scale,
                     scores + first - seen.begin);
  });
}

/// out (width) = softmax(scores) values; scores become the weights.
inline void paged_values(const PagedRows& rows, const Seen& seen, std::int64_t stride,
                         float* scores, float* out) {
  const auto held = seen.end - seen.begin;
  const auto total = exp_weights(scores, held, max_of(scores, held), 1, scores);
  const auto share = static_cast<float>(1 / total);
  for (std::int64_t i = 0; i < held; ++i) scores[i] *= share;
  std::fill_n(out, seen.width, 0.0f);
  PagedRows::each_piece(seen.begin, seen.end, [&](std::int64_t first, std::int64_t n) {
    add_weighted(scores + first - seen.begin, rows.slot(seen.row, first, 1) + seen.offset, stride,
                 n, seen.width, out);
  });
}

/// Room for scores, one piece a thread.
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

}  // namespace infer
