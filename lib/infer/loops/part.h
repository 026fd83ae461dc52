#pragma once
// Part of a layer in LayeredEngine: attention, a recurrence, a feed-forward network.
// Decoding of a transformer's feed-forward network, and of a single affine map.

#include "infer/decode/decode_weights.h"
#include "infer/decode/paged_rows.h"
#include "nn/layers/layers.h"

namespace infer {

/// Consecutive tokens of one row.
struct Run {
  std::size_t row;
  std::int64_t begin, count;  ///< positions [begin, begin + count) in the chunk
  std::int64_t position;      ///< position of the first token in the row
  std::int64_t call;          ///< position of the row's first token in this call of feed
};

/// Tokens in one pass through the layers.
struct Chunk {
  std::int64_t n = 0;
  std::vector<Run> runs;
  std::int64_t threads = 1;

  /// Calls body(run, head) for a thread's share of all heads of all runs.
  template <class Body>
  void each_head(TeamShare share, std::int64_t heads, const Body& body) const {
    const auto tasks = static_cast<std::int64_t>(runs.size()) * heads;
    for (auto task = share.begin(tasks); task < share.end(tasks); ++task)
      body(runs[static_cast<std::size_t>(task / heads)], task % heads);
  }
};

/// Rows of floats.
struct Rows {
  const float* data;
  std::int64_t stride;
  const float* operator[](std::int64_t i) const { return data + i * stride; }
};

/// A growing buffer; unwritten elements are zero.
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
  static constexpr std::int64_t kSlack = 16;  // elements that products may read after the last head
  std::int64_t stride_ = 0;
  std::vector<float> data_;
};

/// A part. Rows of text are opened, cleared and selected as in Engine.
class Part {
 public:
  virtual ~Part() = default;
  virtual void open(std::int64_t rows) { (void)rows; }
  virtual void clear(std::size_t row) { (void)row; }
  virtual void select(const std::vector<std::int64_t>& rows) { (void)rows; }
  virtual void forget(std::int64_t keep) { (void)keep; }

  virtual std::int64_t out() const = 0;  ///< width of the output
  /// Allocates memory for a chunk; called before the parallel region.
  virtual void prepare(const Chunk& chunk) = 0;
  /// Computes a thread's share of y (n, out), with row stride ldy, from x (n, in), whose rows are
  /// zero-padded to a multiple of 16. All threads of a team call it; y is complete when all have
  /// returned.
  virtual void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) = 0;
  /// Returns the memory keys, if they are neither the part's input nor its output; else null data.
  virtual Rows keys() const { return {nullptr, 0}; }
};

/// A part that stores a state of floats for each row, which begins with zeros, and slots for each
/// token.
class StatePart : public Part {
 public:
  explicit StatePart(std::int64_t size, PagedRows slots = {})
      : slots_(std::move(slots)), none_(static_cast<std::size_t>(size), 0.0f) {}
  void open(std::int64_t rows) override {
    states_.assign(static_cast<std::size_t>(rows), none_);
    slots_.open(rows);
  }
  void clear(std::size_t row) override {
    states_[row] = none_;
    slots_.clear(row);
  }
  void select(const std::vector<std::int64_t>& rows) override {
    states_ = chosen(states_, rows);
    slots_.select(rows);
  }
  void forget(std::int64_t keep) override { slots_.forget(keep); }

 protected:
  float* state(std::size_t row) { return states_[row].data(); }
  /// Makes a row begin with `value` in its numbers from `first` on.
  void begin_with(std::int64_t first, float value) {
    std::fill(none_.begin() + first, none_.end(), value);
  }
  PagedRows slots_;

 private:
  std::vector<float> none_;
  std::vector<std::vector<float>> states_;
};

/// Appends slots for a chunk's tokens. Returns the maximum number of tokens in one of its rows.
inline std::int64_t append(PagedRows& rows, const Chunk& chunk) {
  std::int64_t longest = 0;
  for (const auto& run : chunk.runs) {
    for (std::int64_t i = 0; i < run.count; ++i) rows.append(run.row);
    longest = std::max(longest, rows.end(run.row) - rows.begin(run.row));
  }
  return longest;
}

/// Limits what a layer with its own memory length sees (nn/layers/layer_memory.h). A call sees
/// `length` tokens before its first token and its own tokens up to the query. With `same_length`, a
/// query sees at most `length` tokens before itself.
struct LayerPast {
  std::int64_t length = 0;
  bool same_length = false;

  std::int64_t oldest(const Run& run, std::int64_t position) const {
    const auto held = std::max<std::int64_t>(0, run.call - length);
    return same_length ? std::max(held, position - length) : held;
  }
  /// Appends slots for a chunk's tokens and drops those that no later token can see. Returns the
  /// maximum number of tokens that a query sees.
  std::int64_t extend(PagedRows& rows, const Chunk& chunk) const {
    for (const auto& run : chunk.runs) rows.drop(run.row, run.call - length);
    return append(rows, chunk);
  }
};

/// Ends the run() of a part with heads: calls body(run, head) for a thread's share of all heads of
/// all runs when the team has done what precedes, and then projects `read`, which the heads wrote,
/// into y (n, out) with row stride ldy.
template <class Body>
void run_heads(const Chunk& chunk, TeamShare share, std::int64_t heads, const Affine& project,
    Buffer& read, float* y, std::int64_t ldy, const Body& body) {
#pragma omp barrier
  chunk.each_head(share, heads, body);
#pragma omp barrier
  project.multiply(read.data(), chunk.n, read.stride(), share, y, ldy);
}

/// Returns `width` rounded up to a multiple of 16: what products read.
inline std::int64_t padded(std::int64_t width) { return (width + 15) / 16 * 16; }

/// Computes reduce(activation(expand(x))). A gated network has twice as many outputs of expand and
/// reduces activation(first half) * second half.
class FeedForward {
 public:
  FeedForward(DecodeWeights& weights, const WeightAndBias& expand, const WeightAndBias& reduce,
      std::int64_t d, std::int64_t inner, nn::Activation activation, bool gated);

  /// Working memory, which the layers of an engine may share.
  struct Room {
    Buffer inner, factors;
  };
  /// Makes room for n rows; called before the parallel region.
  void fit(Room& room, std::int64_t n) const;
  /// Computes a thread's share of y (n, out) from x, as Part::run().
  void run(std::int64_t n, TeamShare share, Rows x, Room& room, float* y, std::int64_t ldy) const;
  /// Returns the map that computes y.
  const Affine& last() const { return reduce_; }

 private:
  Affine expand_, reduce_;
  std::optional<Affine> factor_;  // gated: second half of expand
  nn::Activation activation_;
};

/// A feed-forward network with weights NAME.c_fc and NAME.c_proj.
class FeedForwardPart : public Part {
 public:
  FeedForwardPart(DecodeWeights& weights, const std::string& name, std::int64_t d,
      std::int64_t inner, nn::Activation activation, bool gated = false)
      : network_(weights, weights.of(name + ".c_fc"), weights.of(name + ".c_proj"), d, inner,
            activation, gated) {}
  std::int64_t out() const override { return network_.last().matrix.out(); }
  void prepare(const Chunk& chunk) override { network_.fit(room_, chunk.n); }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    network_.run(chunk.n, share, x, room_, y, ldy);
  }

 private:
  FeedForward network_;
  FeedForward::Room room_;
};

class AffinePart : public Part {
 public:
  explicit AffinePart(Affine map) : map_(std::move(map)) {}
  std::int64_t out() const override { return map_.matrix.out(); }
  void prepare(const Chunk& chunk) override { (void)chunk; }
  void run(const Chunk& chunk, TeamShare share, Rows x, float* y, std::int64_t ldy) override {
    map_.multiply(x.data, chunk.n, x.stride, share, y, ldy);
  }

 private:
  Affine map_;
};

}  // namespace infer
