#pragma once
// Helpers of kernel tests: device memory, random numbers, gaps. Host code only.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

namespace cuda_test {

using Floats = std::vector<float>;

inline Floats random_floats(std::size_t n, unsigned seed, float least = -1, float most = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(least, most);
  Floats out(n);
  for (auto& x : out) x = draw(generator);
  return out;
}

inline void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

/// Device memory with the contents of a vector.
template <class T> class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host) : size_(host.size()) {
    require(cudaMalloc(&data_, bytes()) == cudaSuccess, "cudaMalloc");
    require(size_ == 0 || cudaMemcpy(data_, host.data(), size_ * sizeof(T),
                              cudaMemcpyHostToDevice) == cudaSuccess,
        "a copy to the device");
  }
  /// Fills memory with NaN, so that elements that a kernel leaves out are detected.
  static OnDevice unwritten(std::size_t n) { return OnDevice(std::vector<T>(n, T(NAN))); }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* data() { return static_cast<T*>(data_); }
  std::vector<T> back() const {
    std::vector<T> host(size_);
    require(
        cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess,
        "a copy from the device");
    return host;
  }

 private:
  std::size_t bytes() const { return std::max<std::size_t>(1, size_) * sizeof(T); }
  void* data_ = nullptr;
  std::size_t size_;
};

/// Returns the largest |a - b| / (1 + |b|), or infinity if only one of the two is NaN.
inline double gap(const Floats& a, const Floats& b) {
  require(a.size() == b.size(), "vectors of two lengths");
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double gap = std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i])));
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    most = std::max(most, std::isnan(gap) ? INFINITY : gap);
  }
  return most;
}

/// The largest of several gaps.
struct Worst {
  double gap = 0;
  void operator()(double other) { gap = std::max(gap, other); }
};

}  // namespace cuda_test
