#pragma once
// A piece of a layer as LayeredEngine runs it: attention, a recurrence, a feed-forward network.

#include <cstdint>
#include <vector>

#include "infer/decode/team_share.h"

namespace infer {

/// Tokens of one row that follow each other.
struct Run {
  std::size_t row;
  std::int64_t begin, count;  ///< places [begin, begin + count) of the chunk
  std::int64_t position;      ///< of its first token in the row
  std::int64_t call;          ///< position of the row's first token of this call of feed
};

/// Tokens that go through the layers together.
struct Chunk {
  std::int64_t n = 0;
  std::vector<Run> runs;
  std::int64_t threads = 1;

  /// body(run, head) for a thread's share of all heads of all runs.
  template <class Body>
  void each_head(TeamShare share, std::int64_t heads, const Body& body) const {
    const auto tasks = static_cast<std::int64_t>(runs.size()) * heads;
    for (auto task = share.begin(tasks); task < share.end(tasks); ++task)
      body(runs[static_cast<std::size_t>(task / heads)], task % heads);
  }
};

/// n rows of floats.
struct Rows {
  const float* data;
  std::int64_t stride;
  const float* operator[](std::int64_t i) const { return data + i * stride; }
};

/// A buffer that grows, zeros where nothing was written.
class Buffer {
 public:
  void fit(std::int64_t rows, std::int64_t stride) {
    stride_ = stride;
    const auto size = static_cast<std::size_t>(rows * stride + kSlack);
    if (data_.size() < size) data_.assign(size, 0.0f);
  }
  std::int64_t stride() const { return stride_; }
  float* row(std::int64_t i) { return data_.data() + i * stride_; }
  float* data() { return data_.data(); }
  Rows rows() const { return {data_.data(), stride_}; }

 private:
  static constexpr std::int64_t kSlack = 16;  // what products read behind a last head
  std::int64_t stride_ = 0;
  std::vector<float> data_;
};

/// Rows of text are opened, cleared and selected as an Engine's are.
class Part {
 public:
  virtual ~Part() = default;
  virtual void open(std::int64_t rows) { (void)rows; }
  virtual void clear(std::size_t row) { (void)row; }
  virtual void select(const std::vector<std::int64_t>& rows) { (void)rows; }
  virtual void forget(std::int64_t keep) { (void)keep; }

  virtual std::int64_t out() const = 0;  ///< width of what it makes
  /// Before the threads come: room for a chunk.
  virtual void prepare(const Chunk& chunk) = 0;
  /// By all threads of a team, each its share: x (n, in), zeros behind each row up to a multiple
  /// of 16 -> y (n, out) with row stride ldy. All of y is there once all threads have returned.
  virtual void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) = 0;
  /// What keys a memory, if that is neither what it reads nor what it makes; else data is null.
  virtual Rows keys() const { return {nullptr, 0}; }
};

/// The multiple of 16 that holds `width` floats: what products read.
inline std::int64_t padded(std::int64_t width) { return (width + 15) / 16 * 16; }

}  // namespace infer
