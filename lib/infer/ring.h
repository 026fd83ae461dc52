#pragma once
// The last positions of a stream, as memory entries.

#include <cstdint>
#include <limits>

#include "nn/memory.h"
#include "nn/torch.h"

namespace infer {

/// The last `capacity` steps of `rows` streams that advance together (one, or the rows of a batch
/// being decoded). Tensors are allocated once, twice as long as needed, so that what is held always
/// lies in one piece, oldest first, a step's rows side by side, and a step is moved once at most
/// on average. Not thread safe.
class Ring {
 public:
  /// `options`: dtype and device of the keys.
  Ring(std::int64_t capacity, std::int64_t width, torch::TensorOptions options,
       std::int64_t rows = 1);
  Ring(Ring&&) = default;
  Ring& operator=(Ring&&) = default;
  Ring clone() const;

  /// T steps: keys (T * rows, width), labels and place (T * rows), step by step. Copied.
  void append(const torch::Tensor& keys, const torch::Tensor& labels, const nn::Place& place);
  /// Views of the steps held, without the `skip` newest, and of those the `at_most` newest. Good
  /// until the next call of append, select or clear.
  nn::Entries view(std::int64_t skip = 0,
                   std::int64_t at_most = std::numeric_limits<std::int64_t>::max()) const;
  /// Row i becomes what row rows[i] was: rows int64, as many as there are to be from now on (beam
  /// search, rows that ended). Runs become the row's number.
  void select(const torch::Tensor& rows);
  void clear();

  std::int64_t size() const { return end_ - begin_; }  ///< steps
  std::int64_t capacity() const { return capacity_; }
  std::int64_t rows() const { return rows_; }

 private:
  void resize(std::int64_t slots);
  Ring() = default;
  std::int64_t capacity_ = 0, rows_ = 1, slots_ = 0, begin_ = 0, end_ = 0;  // in steps
  torch::Tensor keys_, labels_, run_, segment_, position_;
};

}  // namespace infer
