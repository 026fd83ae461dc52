#pragma once
// What gates are fitted on: of each token what each source gave, kept while a text is walked over.

#include <cstdint>
#include <vector>

#include "infer/memory/stream_memory.h"
#include "infer/score/gate_fit.h"

namespace infer {

/// Tokens as float32. Of a text with more than are kept it keeps every second, fourth, eighth ...,
/// so that memory stays bounded.
class GateSamples {
 public:
  explicit GateSamples(std::int64_t most_bytes = 256 << 20) : most_bytes_(most_bytes) {}

  void add(const Parts& parts);
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()) / width_; }
  /// What was kept at a point of the grid: of temperatures, thetas and the stores' temperatures.
  Parts at(std::int64_t temperature, std::int64_t theta, std::int64_t store_temperature) const;

 private:
  void thin();

  std::int64_t most_bytes_;
  std::int64_t width_ = 1;  // numbers of a token
  // How many of each: joint and memory, cache and its mass, stores, further models, confidence,
  // features of stores and of the model with a gate, n-grams with their bucket and features, the
  // weight.
  std::vector<std::int64_t> columns_;
  std::vector<float> rows_;
  std::uint64_t stride_ = 1, next_ = 0;
};

/// The gates of `plan`, whose shares are the best constants, fitted on `parts`; and its nats a
/// token with those constants and with the gates.
struct GatesFitted {
  Gate gate;
  double constant_loss = 0, loss = 0;
};
GatesFitted fit_gates(const Parts& parts, const MemoryPlan& plan);

}  // namespace infer
