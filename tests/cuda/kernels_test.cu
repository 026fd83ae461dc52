// The kernels of lib/nn/*_cuda.cu against the CPU's, whose own tests hold them to the formulas.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "nn/leaky_cuda.h"
#include "nn/leaky_kernels.h"
#include "nn/sru_scan_cuda.h"
#include "nn/sru_scan_kernels.h"

namespace {

using Floats = std::vector<float>;

bool no_gpu() {
  int devices = 0;
  const auto code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return false;
  DOCTEST_MESSAGE("SKIP no CUDA device here: the kernels were compiled, not run");
  return true;
}

Floats random_floats(std::size_t n, unsigned seed, float least = -1, float most = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(least, most);
  Floats out(n);
  for (auto& x : out) x = draw(generator);
  return out;
}

// Memory of the device, with what a vector holds.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host) : size_(host.size()) {
    DOCTEST_REQUIRE(cudaMalloc(&data_, bytes()) == cudaSuccess);
    DOCTEST_REQUIRE(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* data() { return static_cast<T*>(data_); }
  std::vector<T> back() const {
    std::vector<T> host(size_);
    DOCTEST_REQUIRE(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
  }

 private:
  std::size_t bytes() const { return std::max<std::size_t>(1, size_) * sizeof(T); }
  void* data_ = nullptr;
  std::size_t size_;
};

double gap(const Floats& a, const Floats& b) {
  DOCTEST_REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, double(std::abs(a[i] - b[i])) / (1 + std::abs(b[i])));
  return most;
}

constexpr double kClose = 2e-5;

// parts (n, size) added up over n, groups of `size` / out of them together.
Floats summed(const Floats& parts, std::size_t size, std::size_t out) {
  Floats total(out, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) total[i % size * out / size] += parts[i];
  return total;
}

void check_leaky(std::int64_t rows, std::int64_t steps, std::int64_t heads, std::int64_t width,
                 bool from, bool want_keys, bool want_sums) {
  const std::int64_t d = heads * width, x_step = d + 3, x_row = steps * x_step + 5;
  const auto n = static_cast<std::size_t>(rows * steps * d);
  const auto x = random_floats(static_cast<std::size_t>(rows * x_row), 1),
             decay = random_floats(static_cast<std::size_t>(heads), 2, 0.5F, 0.99F),
             scale = random_floats(static_cast<std::size_t>(heads), 3, 0.5F, 2),
             before = random_floats(static_cast<std::size_t>(rows * d), 4),
             d_keys = random_floats(n, 5), d_sums = random_floats(n, 6);
  const nn::LeakyShape shape{steps, heads, width, x_step}, dense{steps, heads, width, d};
  Floats keys(n), norms(static_cast<std::size_t>(rows * steps * heads)), dx(n),
      d_before(before.size()), d_decay(decay.size()), d_scale(scale.size());
  for (std::int64_t b = 0; b < rows; ++b) {
    const auto at = b * steps * d;
    const float* const start = from ? before.data() + b * d : nullptr;
    nn::leaky_keys_forward<float>(shape, x.data() + b * x_row, decay.data(), scale.data(), start,
                                  keys.data() + at, norms.data() + b * steps * heads);
    nn::leaky_keys_backward<float>(
        dense, keys.data() + at, norms.data() + b * steps * heads, decay.data(), scale.data(),
        start, want_keys ? d_keys.data() + at : nullptr, want_sums ? d_sums.data() + at : nullptr,
        dx.data() + at, from ? d_before.data() + b * d : nullptr, d_decay.data(), d_scale.data());
  }

  OnDevice<float> x_(x), decay_(decay), scale_(scale), before_(before), d_keys_(d_keys),
      d_sums_(d_sums), keys_(Floats(keys.size())), norms_(Floats(norms.size())),
      dx_(Floats(dx.size())), d_before_(Floats(before.size())),
      d_decay_(Floats(static_cast<std::size_t>(rows * d))), d_scale_(Floats(norms.size()));
  const nn::LeakyDevice leaky{
      rows,  steps,  heads,         width,         x_.data(),
      x_row, x_step, decay_.data(), scale_.data(), from ? before_.data() : nullptr};
  DOCTEST_REQUIRE(nn::leaky_keys_forward_cuda(leaky, keys_.data(), norms_.data(), nullptr) == 0);
  DOCTEST_CHECK(gap(keys_.back(), keys) < kClose);
  DOCTEST_CHECK(gap(norms_.back(), norms) < kClose);
  const nn::LeakyDeviceGradients gradients{want_keys ? d_keys_.data() : nullptr,
                                           want_sums ? d_sums_.data() : nullptr,
                                           dx_.data(),
                                           from ? d_before_.data() : nullptr,
                                           d_decay_.data(),
                                           d_scale_.data()};
  DOCTEST_REQUIRE(
      nn::leaky_keys_backward_cuda(leaky, keys_.data(), norms_.data(), gradients, nullptr) == 0);
  DOCTEST_CHECK(gap(dx_.back(), dx) < kClose);
  if (from) DOCTEST_CHECK(gap(d_before_.back(), d_before) < kClose);
  const auto h = static_cast<std::size_t>(heads);
  DOCTEST_CHECK(gap(summed(d_decay_.back(), static_cast<std::size_t>(d), h), d_decay) <
                10 * kClose);
  DOCTEST_CHECK(gap(summed(d_scale_.back(), h, h), d_scale) < 10 * kClose);
}

}  // namespace

DOCTEST_TEST_CASE("leaky keys on the GPU equal the CPU's, values and gradients") {
  if (no_gpu()) return;
  for (const bool from : {false, true}) {
    check_leaky(3, 37, 4, 20, from, true, true);
    check_leaky(1, 1, 1, 1, from, true, false);
    check_leaky(2, 300, 3, 64, from, false, true);
  }
}

DOCTEST_TEST_CASE("SRU++'s recurrence on the GPU equals the CPU's, values and gradients") {
  if (no_gpu()) return;
  constexpr std::int64_t kRows = 3, kSteps = 41, kWidth = 150;
  constexpr std::size_t kCells = kRows * kSteps * kWidth, kChannels = kRows * kWidth;
  const auto gates = random_floats(3 * kCells, 1), x = random_floats(kCells, 2),
             start = random_floats(kChannels, 3), dropout = random_floats(kChannels, 4, 0, 2),
             weights = random_floats(4 * kWidth, 5), d_h = random_floats(kCells, 6),
             d_last = random_floats(kChannels, 7);
  const std::vector<std::int64_t> lengths = {41, 0, 17};
  const float* const w = weights.data();
  Floats cells(kCells), h(kCells), last = start, d_gates(3 * kCells), d_x(kCells),
                                   d_start(kChannels), d_weights(4 * kChannels);
  for (std::int64_t b = 0; b < kRows; ++b) {
    const auto at = b * kSteps * kWidth, channel = b * kWidth, n = lengths[std::size_t(b)];
    const nn::SruRow<float> row{n,
                                kWidth,
                                gates.data() + 3 * at,
                                x.data() + at,
                                start.data() + channel,
                                dropout.data() + channel,
                                w,
                                w + kWidth,
                                w + 2 * kWidth,
                                w + 3 * kWidth};
    for (std::int64_t begin = 0; begin < kWidth; begin += nn::kSruChannels) {
      const auto end = std::min(begin + nn::kSruChannels, kWidth);
      nn::sru_forward(row, begin, end, cells.data() + at, h.data() + at);
      nn::sru_backward(
          row, begin, end, cells.data() + at,
          nn::SruGradients<float>{d_h.data() + at, d_last.data() + channel, d_gates.data() + 3 * at,
                                  d_x.data() + at, d_start.data() + channel,
                                  d_weights.data() + 4 * channel});
    }
    if (n > 0) std::copy_n(cells.data() + at + (n - 1) * kWidth, kWidth, last.data() + channel);
  }

  OnDevice<float> gates_(gates), x_(x), start_(start), weights_(weights), dropout_(dropout),
      d_h_(d_h), d_last_(d_last), cells_(Floats(cells.size())), h_(Floats(h.size())),
      last_(Floats(last.size())), d_gates_(Floats(d_gates.size())), d_x_(Floats(d_x.size())),
      d_start_(Floats(d_start.size())), d_weights_(Floats(d_weights.size()));
  OnDevice<std::int64_t> lengths_(lengths);
  float* const on = weights_.data();
  const nn::SruDeviceScan scan{
      kRows, kSteps,      kWidth,          gates_.data(),   x_.data(),       start_.data(),
      on,    on + kWidth, on + 2 * kWidth, on + 3 * kWidth, dropout_.data(), lengths_.data()};
  DOCTEST_REQUIRE(nn::sru_forward_cuda(scan, cells_.data(), h_.data(), last_.data(), nullptr) == 0);
  DOCTEST_REQUIRE(nn::sru_backward_cuda(scan, cells_.data(),
                                        {d_h_.data(), d_last_.data(), d_gates_.data(), d_x_.data(),
                                         d_start_.data(), d_weights_.data()},
                                        nullptr) == 0);
  DOCTEST_CHECK(gap(cells_.back(), cells) < kClose);
  DOCTEST_CHECK(gap(h_.back(), h) < kClose);
  DOCTEST_CHECK(gap(last_.back(), last) < kClose);
  DOCTEST_CHECK(gap(d_gates_.back(), d_gates) < kClose);
  DOCTEST_CHECK(gap(d_x_.back(), d_x) < kClose);
  DOCTEST_CHECK(gap(d_start_.back(), d_start) < kClose);
  DOCTEST_CHECK(gap(d_weights_.back(), d_weights) < 10 * kClose);
}
