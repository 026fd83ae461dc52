#pragma once
// A contextual memory unit that forecasts vectors (Zhang et al. 2024, section 3: three moons), on
// plain floats.

#include <cstdint>
#include <vector>

namespace forecast {

inline constexpr std::int64_t kMostPoints = 32;

/// Observations are `points` points of the plane as complex numbers: 2 points floats.
struct Shape {
  std::int64_t points = 3, heads = 1;  ///< heads divide points
  float beta = 50;
  std::int64_t width() const { return 2 * points; }
  std::int64_t parameters() const { return 3 * points * points * 2; }
};

/// Computes y_t = W_z of sum over s < t of softmax_s(beta k_t . k_s) v_s for each head, with k_t =
/// W_key x_t and v_s = W_value x_{s+1}; y_t forecasts x_{t+1}, y_0 is 0. The maps are complex
/// matrices, weights = W_key, W_value, W_z, each (points, points, 2), row-major, as (re, im).
/// Stores keys and values of up to `capacity` steps, channel by channel. Not thread safe.
class MemoryUnit {
 public:
  MemoryUnit(const Shape& shape, std::int64_t capacity);

  void set_key(std::int64_t step, const float* x, const float* weights);
  void set_value(std::int64_t step, const float* next_x, const float* weights);
  /// Computes the forecast y (width) of x_{step + 1} from the pairs before `step` and the key of
  /// `step`.
  void forecast(std::int64_t step, const float* weights, float* y);

  /// Computes y (steps, width) from x (steps, width): y_t forecasts x_{t+1}. Stores the data for
  /// backward.
  void forward(const float* x, std::int64_t steps, const float* weights, float* y);
  /// Adds to d_weights (parameters()) for dy (steps, width).
  void backward(
      const float* x, std::int64_t steps, const float* weights, const float* dy, float* d_weights);

 private:
  /// Computes scores_ = beta k_step . k_s of a head, s < step.
  void score(std::int64_t step, std::int64_t head);
  /// Computes the head's channels of o (width), and its log_sums_.
  void read(std::int64_t step, std::int64_t head, float* o);
  void read_back(std::int64_t step, std::int64_t head, const float* o, const float* d_o);
  float* channel(std::vector<float>& of, std::int64_t c) { return of.data() + c * capacity_; }

  Shape shape_;
  std::int64_t capacity_, channels_;  // channels of a head
  std::vector<float> keys_, values_;  // (width, capacity)
  std::vector<float> scores_, d_scores_;
  std::vector<float> log_sums_;  // (capacity, heads), for backward
  std::vector<float> read_;      // (capacity, width): the heads' outputs, for backward
  std::vector<float> d_keys_, d_values_;
};

}  // namespace forecast
