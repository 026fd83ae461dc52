#include "kernel_cases.h"
#include "nn/kernels/sru_scan_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

double sru_gap(std::int64_t rows, std::int64_t steps, std::int64_t d, bool dropped,
    const std::vector<std::int64_t>& lengths) {
  const auto cells_n = std::size_t(rows * steps * d), channels_n = std::size_t(rows * d);
  const auto gates = random_floats(3 * cells_n, 1), x = random_floats(cells_n, 2),
             start = random_floats(channels_n, 3), dropout = random_floats(channels_n, 4, 0, 2),
             weights = random_floats(4 * std::size_t(d), 5), d_h = random_floats(cells_n, 6),
             d_last = random_floats(channels_n, 7);
  const auto inputs = [&](const float* gates_at, const float* x_at, const float* start_at,
                          const float* dropout_at, const float* w, const std::int64_t* steps_at) {
    return nn::SruInputs<float>{rows, steps, d, gates_at, x_at, start_at,
        dropped ? dropout_at : nullptr, w, w + d, w + 2 * d, w + 3 * d,
        lengths.empty() ? nullptr : steps_at};
  };

  // Elements that no step reaches keep their values.
  Floats cells(cells_n, NAN), h(cells_n, NAN), last(channels_n, NAN), d_gates(3 * cells_n, NAN),
      d_x(cells_n, NAN), d_start(channels_n, NAN), d_weights(4 * channels_n, NAN);
  const auto in =
      inputs(gates.data(), x.data(), start.data(), dropout.data(), weights.data(), lengths.data());
  for (std::int64_t piece = 0; piece < nn::sru_pieces(rows, d); ++piece) {
    nn::sru_forward_cpu<float>(in, {cells.data(), h.data(), last.data()}, piece);
    nn::sru_backward_cpu<float>(in, cells.data(),
        {d_h.data(), d_last.data(), d_gates.data(), d_x.data(), d_start.data(), d_weights.data()},
        piece);
  }

  OnDevice<float> gates_(gates), x_(x), start_(start), dropout_(dropout), weights_(weights),
      d_h_(d_h), d_last_(d_last);
  OnDevice<std::int64_t> lengths_(lengths);
  auto cells_ = OnDevice<float>::unwritten(cells_n), h_ = OnDevice<float>::unwritten(cells_n),
       last_ = OnDevice<float>::unwritten(channels_n),
       d_gates_ = OnDevice<float>::unwritten(3 * cells_n),
       d_x_ = OnDevice<float>::unwritten(cells_n),
       d_start_ = OnDevice<float>::unwritten(channels_n),
       d_weights_ = OnDevice<float>::unwritten(4 * channels_n);
  const auto on = inputs(
      gates_.data(), x_.data(), start_.data(), dropout_.data(), weights_.data(), lengths_.data());
  require(
      nn::sru_forward_cuda(on, {cells_.data(), h_.data(), last_.data()}, nullptr) == 0, "forward");
  require(nn::sru_backward_cuda(on, cells_.data(),
              {d_h_.data(), d_last_.data(), d_gates_.data(), d_x_.data(), d_start_.data(),
                  d_weights_.data()},
              nullptr) == 0,
      "backward");
  constexpr double kClose = 2e-5;
  Worst worst;
  worst(gap(cells_.back(), cells) / kClose);
  worst(gap(h_.back(), h) / kClose);
  worst(gap(last_.back(), last) / kClose);
  worst(gap(d_gates_.back(), d_gates) / kClose);
  worst(gap(d_x_.back(), d_x) / kClose);
  worst(gap(d_start_.back(), d_start) / kClose);
  worst(gap(d_weights_.back(), d_weights) / (10 * kClose));
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> sru_scan_cases() {
  return {{"SRU++ with rows of 41, 0 and 17 steps",
              [] {
                return sru_gap(3, 41, 150, true, {41, 0, 17});
              }},
      {"SRU++ without dropout", [] { return sru_gap(2, 9, 129, false, {}); }},
      {"SRU++, one of each", [] { return sru_gap(1, 1, 1, true, {}); }}};
}

}  // namespace cuda_test
