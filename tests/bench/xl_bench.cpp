// xl/memory and xl/time: the first table of Rae & Razavi (2020) in training: 24 layers, of which
// 24, 12, 4, 1 or 0 (interleaved) have a long memory. Memory is the growth of the process beyond
// the weights and their gradients (as in the table, whose 0.2 GB for no long memory cannot hold
// 277M parameters). Time is that of forward and backward per token. Both are compared with a plain
// implementation. The ratios of 24 to 4 long memories are printed with the published ratios, 3.1
// (memory) and 2.1 (time), and with the plain implementation's. A plain implementation stores
// scores (T, S) per head for the backward pass, which dominate its ratio. Blocks of queries store
// none and have less to gain.
//
// usage: bench_xl [SCALE]; SCALE (1) multiplies width and lengths; prints JSON lines

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measured.h"
#include "nn/arch/model.h"
#include "nn/base/runtime.h"
#include "nn/layers/layer_memory.h"

namespace {

using bench::Measured;
using bench::print;
using torch::Tensor;

constexpr std::int64_t kLayers = 24, kVocabulary = 256, kRows = 2;

struct Shape {
  std::int64_t width, heads, segment, far, near;
  std::string pattern(std::int64_t n) const {
    return "long=" + std::to_string(far) + " short=" + std::to_string(near) +
           (n == 0 ? " place=none" : " place=interleaved:" + std::to_string(n));
  }
};

// A training step on a segment. The step keeps the carried state.
using Step = std::function<void(const Tensor& ids, bool gradient)>;

nn::ModelOptions options_of(const Shape& shape, const std::string& pattern) {
  nn::ModelOptions options;
  options.arch = "transformer-xl";
  options.shape.layers = kLayers;
  options.shape.d_model = shape.width;
  options.shape.heads = shape.heads;
  options.shape.dropout = 0;
  options.transformer.norm = "post";
  options.transformer.activation = "relu";
  options.layer_memory.layer_memory = pattern;
  return options;
}

Step ours(const Shape& shape, const std::string& pattern) {
  auto model = std::make_shared<nn::Model>(options_of(shape, pattern), kVocabulary);
  auto state = std::make_shared<nn::State>();
  return [model, state](const Tensor& ids, bool gradient) {
    const torch::AutoGradMode mode(gradient);
    nn::Batch batch;
    batch.inputs = batch.targets = ids;
    batch.place = {torch::zeros_like(ids), torch::zeros_like(ids), torch::zeros_like(ids)};
    const auto hidden = model->architecture->forward(batch, state.get());
    if (gradient) hidden.output.sum().backward();
    state->detach();
  };
}

// The usual implementation of the formula: whole score matrices, shifted by padding and copying.
struct Plain {
  std::int64_t d, heads;
  std::vector<std::int64_t> lengths;
  Tensor table, u, v;
  std::vector<std::vector<Tensor>>
      layers;  // qkv, r, o, norm, bias, fc, fc bias, proj, bias, norm, bias
  std::vector<Tensor> memory;

  Plain(const Shape& shape, const std::string& pattern)
      : d(shape.width), heads(shape.heads), lengths(nn::parse_layer_memory(pattern, kLayers)) {
    const auto leaf = [](torch::IntArrayRef sizes) {
      return torch::randn(sizes).mul_(0.02).requires_grad_();
    };
    table = leaf({kVocabulary, d}), u = leaf({heads, d / heads}), v = leaf({heads, d / heads});
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers.push_back({leaf({3 * d, d}), leaf({d, d}), leaf({d, d}), leaf({d}), leaf({d}),
          leaf({4 * d, d}), leaf({4 * d}), leaf({d, 4 * d}), leaf({d}), leaf({d}), leaf({d})});
      memory.push_back(torch::empty({kRows, 0, d}));
    }
  }

  static Tensor shifted(const Tensor& x) {  // (B, H, T, S)
    const auto padded =
        torch::cat({torch::zeros({x.size(0), x.size(1), x.size(2), 1}, x.options()), x}, 3);
    return padded.view({x.size(0), x.size(1), x.size(3) + 1, x.size(2)})
        .narrow(2, 1, x.size(3))
        .reshape(x.sizes());
  }

  Tensor attend(const Tensor& x, const Tensor& past, const std::vector<Tensor>& w) const {
    const auto all = torch::cat({past, x}, 1);
    const auto t = x.size(1), s = all.size(1), width = d / heads;
    const auto split = [&](const Tensor& y) {
      return y.view({kRows, -1, heads, width}).transpose(1, 2);
    };
    const auto fused = torch::linear(all, w[0]).chunk(3, 2);
    const auto q = split(fused[0].narrow(1, s - t, t).contiguous()),
               k = split(fused[1].contiguous()), value = split(fused[2].contiguous());
    const auto frequency = torch::arange(0, d, 2).mul(-std::log(10000.0) / double(d)).exp();
    const auto angle = torch::arange(s - 1, -1, -1, torch::kFloat32).unsqueeze(1) * frequency;
    const auto r = torch::linear(torch::cat({angle.sin(), angle.cos()}, 1), w[1])
                       .view({s, heads, width})
                       .permute({1, 2, 0});
    const auto content = (q + u.unsqueeze(1)).matmul(k.transpose(2, 3));
    const auto position = shifted((q + v.unsqueeze(1)).matmul(r));
    auto scores = (content + position) * (1 / std::sqrt(double(width)));
    const auto later = torch::ones({t, s}, torch::kBool).triu(1 + s - t);
    scores = scores.masked_fill(later, -1e30).softmax(3);
    return torch::linear(scores.matmul(value).transpose(1, 2).reshape({kRows, t, d}), w[2]);
  }

  void step(const Tensor& ids, bool gradient) {
    const torch::AutoGradMode mode(gradient);
    auto x = torch::embedding(table, ids) * std::sqrt(double(d));
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto& w = layers[i];
      const auto past = memory[i];
      const auto all = torch::cat({past, x.detach()}, 1);
      const auto keep = std::min(lengths[i], all.size(1));
      memory[i] = all.narrow(1, all.size(1) - keep, keep).clone();
      x = torch::layer_norm(x + attend(x, past, w), {d}, w[3], w[4]);
      const auto inner = torch::relu(torch::linear(x, w[5], w[6]));
      x = torch::layer_norm(x + torch::linear(inner, w[7], w[8]), {d}, w[9], w[10]);
    }
    if (gradient) x.sum().backward();
  }
};

Step plain(const Shape& shape, const std::string& pattern) {
  auto model = std::make_shared<Plain>(shape, pattern);
  return [model](const Tensor& ids, bool gradient) { model->step(ids, gradient); };
}

// Returns, from a child process, the best time per token of three steps with full memories, and the
// growth of the process.
Measured measure(
    const Shape& shape, std::int64_t n, Step (*make)(const Shape&, const std::string&)) {
  return bench::in_child([&] {
    nn::start(2, 1);
    const auto step = make(shape, shape.pattern(n));
    const auto ids = torch::randint(kVocabulary, {kRows, shape.segment}, torch::kInt64);
    step(ids.narrow(1, 0, 1), true);  // allocates the gradients
    return [&shape, step, ids] {
      for (std::int64_t filled = 0; filled < shape.far; filled += shape.segment) step(ids, false);
      step(ids, true);
      double best = 1e9;
      for (int i = 0; i < 3; ++i)
        best = std::min(best, bench::seconds_of([&] { step(ids, true); }));
      return best / static_cast<double>(kRows * shape.segment);
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  // The paper's proportions (d 1024, 8 heads, segment 384, memories of 2304 and 128), divided by
  // four.
  const std::int64_t scale = argc > 1 ? std::atoll(argv[1]) : 1;
  const Shape shape{256 * scale, 8, 96 * scale, 576 * scale, 32 * scale};
  Measured all{}, four{}, plain_all{}, plain_four{};
  for (const std::int64_t n : {24, 12, 4, 1, 0}) {
    const Measured mine = measure(shape, n, ours), other = measure(shape, n, plain);
    const std::string peer = "plain, " + std::to_string(n) + " long";
    print("xl/memory", mine.bytes, "bytes", peer, other.bytes, other.bytes / mine.bytes);
    print("xl/time", 1e6 * mine.seconds, "us/token", peer, 1e6 * other.seconds,
        other.seconds / mine.seconds);
    if (n == 24) all = mine, plain_all = other;
    if (n == 4) four = mine, plain_four = other;
  }
  const double memory = all.bytes / four.bytes, time = all.seconds / four.seconds;
  const double plain_memory = plain_all.bytes / plain_four.bytes,
               plain_time = plain_all.seconds / plain_four.seconds;
  const auto* const unit = "times, 24 to 4 long";
  print("xl/memory", memory, unit, "published", 3.1, memory / 3.1);
  print("xl/memory", memory, unit, "plain", plain_memory, memory / plain_memory);
  print("xl/time", time, unit, "published", 2.1, time / 2.1);
  print("xl/time", time, unit, "plain", plain_time, time / plain_time);
}
