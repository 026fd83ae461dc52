// Tests of the emulation, and tests that only the emulation allows: no kernel depends on the order
// of threads, and every barrier is needed.

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "kernel_cases.h"
#include "nn/kernels/launch.h"
#include "on_device.h"

namespace {

using emulated::Schedule;
using emulated::Turns;

const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> all = {
      {Turns::forward, 0}, {Turns::backward, 0}, {Turns::random, 1}, {Turns::random, 2}};
  return all;
}

// Sets the schedule and a barrier to leave out during its lifetime.
class Under {
 public:
  explicit Under(const Schedule& schedule, const std::string& skip = "") {
    emulated::schedule = schedule;
    emulated::skip = skip;
  }
  ~Under() {
    emulated::schedule = {};
    emulated::skip.clear();
  }
  Under(const Under&) = delete;
  Under& operator=(const Under&) = delete;
};

// out[block * threads + i] is the number that the next thread of the block wrote to shared memory.
__global__ void turn_around(const int* in, int* out) {
  __shared__ int kept[64];
  const unsigned i = threadIdx.x, n = blockDim.x, at = blockIdx.x * n;
  kept[i] = in[at + i];
  __syncthreads();
  out[at + i] = kept[n - 1 - i];
}

__global__ void leave_at_the_barrier(int* out) {
  if (threadIdx.x == 3) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void two_barriers(int* out) {
  if (threadIdx.x < 5) __syncthreads();
  else __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void shuffle_without_some(float* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = nn::warp_sum(1);
}

__global__ void sums(const float* in, float* out) {
  __shared__ float parts[4];
  const float sum = nn::block_sum(in[threadIdx.x], parts);
  const float most = nn::block_max(in[threadIdx.x], parts);
  out[threadIdx.x] = sum + 1000 * most;
}

// Returns the largest gap of a block's sums and maxima, as in kernel_cases.h.
double sums_gap() {
  auto in = cuda_test::random_floats(128, 1);
  in[77] = 3;
  double sum = 0;
  for (const float x : in) sum += double(x);
  cuda_test::Floats out(128, NAN), expected(128, float(sum + 3000));
  nn::launch(sums, dim3(1), 128, nullptr, in.data(), out.data());
  return cuda_test::gap(out, expected) / 1e-6;
}

bool turns_around() {
  std::vector<int> in(3 * 64), out(in.size(), -1);
  std::iota(in.begin(), in.end(), 0);
  nn::launch(turn_around, dim3(3), 64, nullptr, in.data(), out.data());
  for (std::size_t i = 0; i < in.size(); ++i)
    if (out[i] != static_cast<int>(i / 64 * 64 + 63 - i % 64)) return false;
  return true;
}

}  // namespace

DOCTEST_TEST_CASE("emulated threads meet at barriers, whoever has the first turn") {
  for (const auto& schedule : schedules()) {
    const Under under(schedule);
    DOCTEST_CHECK(turns_around());
  }
}

DOCTEST_TEST_CASE("race: a missing __syncthreads gives wrong numbers") {
  emulated::take_barriers();
  DOCTEST_REQUIRE(turns_around());
  const auto barriers = emulated::take_barriers();
  DOCTEST_REQUIRE(barriers.size() == 1);
  for (const auto& schedule : schedules()) {
    const Under under(schedule, *barriers.begin());
    DOCTEST_CHECK_FALSE(turns_around());
  }
}

DOCTEST_TEST_CASE("threads that wait for ones that never come are an error") {
  std::vector<int> out(64);
  std::vector<float> floats(64);
  DOCTEST_CHECK_THROWS_AS(
      nn::launch(leave_at_the_barrier, dim3(1), 64, nullptr, out.data()), std::logic_error);
  DOCTEST_CHECK_THROWS_AS(
      nn::launch(two_barriers, dim3(1), 64, nullptr, out.data()), std::logic_error);
  DOCTEST_CHECK_THROWS_AS(
      nn::launch(shuffle_without_some, dim3(1), 32, nullptr, floats.data()), std::logic_error);
  DOCTEST_CHECK_THROWS_AS(
      nn::launch(shuffle_without_some, dim3(1), 20, nullptr, floats.data()), std::logic_error);
}

DOCTEST_TEST_CASE("sums and maxima of a block reach all its threads") {
  for (const auto& schedule : schedules()) {
    const Under under(schedule);
    DOCTEST_CHECK(sums_gap() < 1);
  }
}

DOCTEST_TEST_CASE("no kernel depends on whose turn it is") {
  for (const auto& kernel : cuda_test::kernel_cases()) {
    DOCTEST_CAPTURE(kernel.name);
    const double usual = kernel.run();
    for (const auto& schedule : schedules()) {
      const Under under(schedule);
      DOCTEST_CHECK(kernel.run() == usual);
    }
  }
}

// Leaves each __syncthreads of the kernels out once: some kernel must then fail.
DOCTEST_TEST_CASE("race: every barrier of every kernel is needed") {
  emulated::take_barriers();
  auto kernels = cuda_test::kernel_cases();
  kernels.push_back({"sums and maxima", sums_gap});
  for (const auto& kernel : kernels) kernel.run();
  const auto barriers = emulated::take_barriers();
  DOCTEST_REQUIRE(!barriers.empty());
  for (const auto& barrier : barriers) {
    DOCTEST_CAPTURE(barrier);
    bool seen = false;
    for (const auto& schedule : schedules())
      for (const auto& kernel : kernels) {
        if (seen) break;
        const Under under(schedule, barrier);
        seen = kernel.run() >= 1;
      }
    DOCTEST_CHECK(seen);
  }
}
