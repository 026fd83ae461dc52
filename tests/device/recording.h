#pragma once
// A table of kernels with which the pretended device records calls.

#include "device/pretend_device.h"
#include "nn/base/cuda.h"

namespace pretend {

template <class F> struct Noted;
template <class... Arguments> struct Noted<int (*)(Arguments...)> {
  template <int (*Kernel)(Arguments...)> static int run(Arguments... arguments) {
    note_kernel([=] { Kernel(arguments...); });
    return Kernel(arguments...);
  }
};

/// Returns the emulated kernels as parts of a recording of graphs().
inline nn::CudaKernels recording_kernels() {
  nn::CudaKernels kernels;
  kernels.graphs = graphs();
  kernels.leaky_keys_forward =
      Noted<decltype(kernels.leaky_keys_forward)>::run<nn::leaky_keys_forward_cuda>;
  kernels.gated_keys_forward =
      Noted<decltype(kernels.gated_keys_forward)>::run<nn::gated_keys_forward_cuda>;
  kernels.delta_forward = Noted<decltype(kernels.delta_forward)>::run<nn::delta_forward_cuda>;
  kernels.sru_forward = Noted<decltype(kernels.sru_forward)>::run<nn::sru_forward_cuda>;
  kernels.row_softmax = Noted<decltype(kernels.row_softmax)>::run<nn::row_softmax_cuda>;
  kernels.seen_tiles = Noted<decltype(kernels.seen_tiles)>::run<nn::seen_tiles_cuda>;
  kernels.seen_raise = Noted<decltype(kernels.seen_raise)>::run<nn::seen_raise_cuda>;
  kernels.seen_exponentiate =
      Noted<decltype(kernels.seen_exponentiate)>::run<nn::seen_exponentiate_cuda>;
  kernels.seen_differentiate =
      Noted<decltype(kernels.seen_differentiate)>::run<nn::seen_differentiate_cuda>;
  return kernels;
}

}  // namespace pretend
