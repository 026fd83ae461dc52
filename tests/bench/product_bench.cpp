// product/*: the process's matrix products compared with those of LibTorch's BLAS on one thread: a
// layer's three (forward, gradient of the weights, gradient of the input), and a large vocabulary.
// Seconds are the best of alternating rounds. If the BLAS computes a product itself, the ratio is
// 1. product/packed-*: 512 rows times a decoder's packed weights, 576 to 1,536, beside the BLAS's
// float32.
//
// usage: bench_product [all]; prints JSON lines; all: of many shapes, as GFLOP/s
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "infer/decode/decode_kernels.h"
#include "measured.h"
#include "nn/base/runtime.h"
#include "nn/product/sgemm.h"

namespace {

using torch::Tensor;

struct Pair {
  double ours = 1e9, theirs = 1e9;
};

template <class F> Pair measured(const F& run) {
  Pair best;
  for (int round = 0; round < 25; ++round) {
    nn::take_products(nn::products_pay());
    best.ours = std::min(best.ours, bench::seconds_of(run));
    nn::take_products(false);
    best.theirs = std::min(best.theirs, bench::seconds_of(run));
  }
  return best;
}

struct Layer {
  Pair forward, weights, input;
};

Layer layer(std::int64_t rows, std::int64_t in, std::int64_t out) {
  const auto x = torch::randn({rows, in}), w = torch::randn({out, in}),
             d = torch::randn({rows, out});
  Tensor y = torch::empty({rows, out}), dw = torch::zeros({out, in}), dx = torch::empty({rows, in});
  return {measured([&] { torch::mm_out(y, x, w.t()); }), measured([&] { dw.addmm_(d.t(), x); }),
      measured([&] { torch::mm_out(dx, d, w); })};
}

void print(const std::string& name, const Pair& pair, double operations) {
  bench::print("product/" + name, operations / pair.ours * 1e-9, "GFLOP/s", "torch's BLAS",
      operations / pair.theirs * 1e-9, pair.theirs / pair.ours);
}

Pair packed(infer::Precision precision) {
  const auto x = torch::randn({512, 576}), w = torch::randn({1536, 576});
  Tensor y = torch::empty({512, 1536});
  const infer::PackedMatrix matrix(w.const_data_ptr<float>(), 1536, 576, precision);
  Pair best;
  for (int round = 0; round < 25; ++round) {
    best.ours = std::min(best.ours, bench::seconds_of([&] {
      matrix.multiply(
          x.const_data_ptr<float>(), 512, 576, 0, matrix.panels(), y.data_ptr<float>(), 1536);
    }));
    best.theirs = std::min(best.theirs, bench::seconds_of([&] { torch::mm_out(y, x, w.t()); }));
  }
  return best;
}

}  // namespace

int main(int argc, char**) {
  nn::start(1, 1);
  const torch::NoGradGuard guard;
  if (argc > 1) {
    const std::vector<std::vector<std::int64_t>> shapes = {{16, 64, 64}, {32, 32, 32}, {32, 64, 64},
        {64, 64, 64}, {32, 256, 1024}, {48, 256, 1024}, {64, 256, 1024}, {128, 192, 192},
        {128, 192, 768}, {128, 768, 192}, {512, 64, 64}, {512, 64, 256}, {512, 256, 64},
        {2048, 192, 4002}, {2048, 768, 3072}, {700, 1024, 4096}, {20, 1024, 4096}};
    for (const auto& s : shapes) {
      const Layer l = layer(s[0], s[1], s[2]);
      const double operations = 2e-9 * static_cast<double>(s[0] * s[1] * s[2]);
      std::printf("%5ld %5ld %5ld", long(s[0]), long(s[1]), long(s[2]));
      for (const Pair& p : {l.forward, l.weights, l.input})
        std::printf(
            "   %4.0f %4.0f %5.2f", operations / p.ours, operations / p.theirs, p.theirs / p.ours);
      std::printf("\n");
    }
    return 0;
  }
  const Layer one = layer(2048, 256, 1024);
  const double operations = 2.0 * 2048 * 256 * 1024;
  print("forward", one.forward, operations);
  print("weights", one.weights, operations);
  print("input", one.input, operations);
  for (const char* name : {"float32", "bfloat16", "int8"})
    print(std::string("packed-") + name, packed(infer::parse_precision(name)),
        2.0 * 512 * 576 * 1536);
  print("words", layer(2048, 256, 16384).forward, 2.0 * 2048 * 256 * 16384);
}
