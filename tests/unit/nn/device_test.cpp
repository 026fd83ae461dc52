// GPU code on the CPU: on a pretended device (tests/device), torch's operators replace raw loops,
// and kernels are emulated. Every architecture, memory and head is compared with the loops and with
// float64, values and gradients, over two segments with carried State. If there is a GPU, the tests
// also run on it.

#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "core/error.h"
#include "device/pretend_device.h"
#include "nn/base/architecture.h"
#include "nn/base/cuda.h"
#include "nn/layers/attention.h"
#include "nn/memory/joint_loss.h"
#include "nn/ops/gla_scan.h"
#include "nn/ops/leaky.h"
#include "nn/ops/sru_scan.h"
#include "properties.h"

namespace {

using torch::Tensor;

const nn::CudaKernels& emulated() {
  static const nn::CudaKernels kernels;
  return kernels;
}

enum class On { loops, operators, kernels, gpu };

// Selects a device during its lifetime.
class Computing {
 public:
  explicit Computing(On on) {
    if (on == On::kernels) as_.emplace(&emulated(), pretend::device().type());
  }

 private:
  std::optional<nn::AsDevice> as_;
};

torch::Device device_of(On on) {
  if (on == On::loops) return torch::kCPU;
  return on == On::gpu ? torch::Device(torch::kCUDA) : pretend::device();
}

// Runs before any test asks LibTorch for a device.
const bool g_loaded = [] {
  try {
    nn::load_cuda();
    return true;
  } catch (const core::Error&) { return false; }
}();

// Returns two rows of nine tokens, segment `segment` of their runs; the second row ends in padding.
nn::Batch segment_of(std::int64_t segment, bool reads_source) {
  constexpr std::int64_t kSteps = 9;
  std::vector<properties::Ids> rows = {
      properties::random_ids(kSteps, 10 + segment), properties::random_ids(kSteps, 20 + segment)};
  if (segment == 1) rows[1][7] = rows[1][8] = properties::kPad;
  nn::Batch batch = properties::batch_of(rows, segment == 0);
  batch.inputs = batch.inputs.clamp_min(0);
  batch.targets = torch::tensor(properties::random_ids(2 * kSteps, 30 + segment)).view({2, kSteps});
  const auto real = batch.place.run >= 0;
  batch.place.position =
      torch::where(real, batch.place.position + kSteps * segment, batch.place.position);
  batch.place.segment = torch::where(real, 10 * batch.place.run + segment, batch.place.segment);
  if (reads_source) batch.source = torch::tensor(properties::random_ids(12, 40)).view({2, 6});
  return batch;
}

using Outcome = std::map<std::string, Tensor>;

Outcome outcome(
    const nn::ModelOptions& options, const nn::MemoryRule& rule, On on, torch::ScalarType type) {
  const auto model = properties::strong_model(options);
  const auto device = device_of(on);
  model->to(device, type);
  const Computing computing(on);
  const bool source = nn::arch_facts(options.arch).reads_source;
  nn::State state;
  Tensor loss;
  for (std::int64_t segment = 0; segment < (source ? 1 : 2); ++segment) {
    const auto batch = segment_of(segment, source).to(device);
    const auto hidden = model->architecture->forward(batch, source ? nullptr : &state);
    const auto nats = nn::joint_loss(
        hidden.output, hidden.key, batch, *model->head, rule, nn::Entries::of(hidden.key, batch));
    loss = loss.defined() ? loss + nats : nats;
  }
  loss.backward();
  Outcome all = {{"loss", loss.detach()}};
  for (const auto& [name, weight] : model->named_weights())
    if (weight.grad().defined()) all["gradient of " + name] = properties::gradient_of(weight);
  for (auto& [name, tensor] : all) tensor = tensor.to(torch::kCPU, torch::kFloat64);
  return all;
}

// Returns the largest difference, relative to the largest number of the tensor in `b`.
double largest_gap(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / (1e-3 + b.abs().max())).item<double>();
}

void check_devices(
    const std::string& name, const nn::ModelOptions& options, const nn::MemoryRule& rule) {
  const auto exact = outcome(options, rule, On::loops, torch::kFloat64),
             loops = outcome(options, rule, On::loops, torch::kFloat32),
             exact_operators = outcome(options, rule, On::operators, torch::kFloat64);
  DOCTEST_CAPTURE(name);
  for (const auto& [what, tensor] : exact) {
    DOCTEST_CAPTURE(what);
    DOCTEST_CHECK(largest_gap(exact_operators.at(what), tensor) < 1e-9);
  }
  for (const On on : {On::operators, On::kernels, On::gpu}) {
    if (on == On::gpu && !g_loaded) continue;
    // Emulation is slow: every rule is tested once.
    if (on == On::kernels && rule.any() && !(rule.local && rule.far) &&
        options.arch != "transformer")
      continue;
    DOCTEST_CAPTURE(static_cast<int>(on));
    const auto there = outcome(options, rule, on, torch::kFloat32);
    DOCTEST_CHECK(there.size() == exact.size());
    for (const auto& [what, tensor] : exact) {
      DOCTEST_CAPTURE(what);
      // As close as the float32 loops; numbers that are 0 except for rounding are close in both.
      // Formulas are tested in float64 above, kernels one by one (tests/cuda).
      DOCTEST_CHECK(
          largest_gap(there.at(what), tensor) < 5e-4 + 50 * largest_gap(loops.at(what), tensor));
    }
  }
}

std::vector<std::pair<std::string, nn::MemoryRule>> rules() {
  std::vector<std::pair<std::string, nn::MemoryRule>> all;
  for (const char* name : {"none", "local", "local,long", "ext", "local,long,ext"})
    all.emplace_back(name, nn::MemoryRule::parse(name));
  all.emplace_back("long, l2, five tokens back", nn::MemoryRule::parse("long"));
  all.back().second.metric = nn::Metric::l2;
  all.back().second.reach = 5;
  all.emplace_back("ext without the own segment", nn::MemoryRule::parse("local,ext"));
  all.back().second.drop_own_segment = true;
  return all;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a device computes what the CPU's loops do: every architecture, memory and head") {
  for (const auto& arch : nn::architecture_names()) {
    for (const bool adaptive : {false, true}) {
      auto options = properties::small_options(arch);
      if (adaptive && arch != "transformer" && arch != "mosaic2")
        continue;  // a head knows no layers
      if (adaptive) options.vocabulary.cutoffs = {4, 9};
      for (const auto& [name, rule] : rules())
        check_devices(
            arch + (adaptive ? ", adaptive head, memory " : ", memory ") + name, options, rule);
    }
  }
}

DOCTEST_TEST_CASE("a device computes what the CPU's loops do: whatever a gla keeps and adds") {
  for (const std::string kind : {"delta gated", "delta none", "sum fixed", "sum none"}) {
    auto options = properties::small_options("gla");
    options.gla.update = kind.substr(0, kind.find(' '));
    options.gla.decay = kind.substr(kind.find(' ') + 1);
    const auto [name, rule] = rules().back();  // what is kept knows no memory of the loss
    check_devices(kind + ", memory " + name, options, rule);
    for (const char* const memory : {"segments", "fenwick"}) {
      options.state_memory = {memory, 3, 4, 5};
      check_devices(kind + ", states " + memory, options, rule);
    }
  }
}

DOCTEST_TEST_CASE("gated linear attention in chunks is the recurrence, whatever the decay") {
  torch::manual_seed(1);
  for (const std::int64_t steps : {1, 16, 64, 150}) {
    for (const double strength : {0.01, 1.0, 60.0}) {
      std::vector<Tensor> leaves = {torch::randn({2, steps, 3, 5}, torch::kFloat64),
          torch::randn({2, steps, 3, 5}, torch::kFloat64),
          -strength * torch::rand({2, steps, 3, 5}, torch::kFloat64),
          torch::randn({2, steps, 3, 4}, torch::kFloat64),
          torch::randn({2, 3, 5, 4}, torch::kFloat64)};
      const auto weigh_o = torch::randn({2, steps, 3, 4}, torch::kFloat64),
                 weigh_state = torch::randn({2, 3, 5, 4}, torch::kFloat64);
      std::vector<std::vector<Tensor>> results;
      for (const auto scan : {nn::gla_scan_plain, nn::gla_scan_chunks}) {
        for (auto& leaf : leaves) leaf = leaf.detach().clone().requires_grad_();
        const auto out = scan({leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]});
        ((out.o * weigh_o).sum() + (out.state * weigh_state).sum()).backward();
        std::vector<Tensor> result = {out.o.detach(), out.state.detach()};
        for (const auto& leaf : leaves) result.push_back(leaf.grad());
        results.push_back(result);
      }
      DOCTEST_CAPTURE(steps);
      DOCTEST_CAPTURE(strength);
      for (std::size_t i = 0; i < results[0].size(); ++i)
        DOCTEST_CHECK(largest_gap(results[1][i], results[0][i]) < 1e-11);
    }
  }
}

// In small models a kernel's block is mostly empty; here it is full.
DOCTEST_TEST_CASE("kernels behind the recurrences: wider than a block, rows of other lengths") {
  torch::manual_seed(2);
  const std::int64_t rows = 2, steps = 21, d = 150;
  const auto gates = torch::randn({rows, steps, 3 * d}), x = torch::randn({rows, steps, d}),
             start = torch::randn({rows, d});
  const nn::SruWeights weights{
      torch::randn({d}), torch::randn({d}), torch::randn({d}), torch::randn({d})};
  const auto lengths = torch::tensor({21, 8}, torch::kInt64);
  const auto decay = torch::rand({3}), scale = torch::rand({3}) + 0.5;
  std::vector<std::vector<Tensor>> results;
  for (const On on : {On::loops, On::kernels}) {
    const Computing computing(on);
    const auto device = device_of(on);
    std::vector<Tensor> leaves = {gates, x, start, decay, scale};
    for (auto& leaf : leaves) leaf = leaf.detach().clone().to(device).requires_grad_();
    const nn::SruWeights there{weights.forget.to(device), weights.highway.to(device),
        weights.forget_bias.to(device), weights.highway_bias.to(device)};
    const auto sru = nn::sru_scan(leaves[0], leaves[1], leaves[2], there, {}, lengths);
    const auto keys = nn::leaky_keys(leaves[1], leaves[3], leaves[4], leaves[2], true);
    (sru.h.square().sum() + sru.cells.sum() + keys.keys.sin().sum() + keys.sums.cos().sum())
        .backward();
    std::vector<Tensor> result = {
        sru.h.detach(), sru.cells.detach(), keys.keys.detach(), keys.sums.detach()};
    for (const auto& leaf : leaves) result.push_back(leaf.grad());
    for (auto& tensor : result) tensor = tensor.cpu();
    results.push_back(result);
  }
  for (std::size_t i = 0; i < results[0].size(); ++i)
    DOCTEST_CHECK(largest_gap(results[1][i], results[0][i]) < 5e-5);
}

// On a device, attention's dropout is that of the fused attention: a share p of the weights is
// dropped, the others are scaled by 1 / (1 - p).
DOCTEST_TEST_CASE("attention's dropout on a device keeps the mean and drops whole weights") {
  torch::manual_seed(3);
  const nn::AsDevice device;
  const auto q = torch::randn({1, 1, 4, 8}), k = torch::randn({1, 1, 6, 8});
  const auto v = torch::eye(6).view({1, 1, 6, 6});  // the output is the weights
  nn::Visibility visibility;
  const auto whole = nn::attend(q, k, v, visibility, 0);
  auto sum = torch::zeros_like(whole), gone = torch::zeros_like(whole);
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const auto out = nn::attend(q, k, v, visibility, 0.25);
    sum += out;
    gone += out.eq(0).to(torch::kFloat32);
    DOCTEST_REQUIRE((out.eq(0) | (out - whole / 0.75).abs().lt(1e-5)).all().item<bool>());
  }
  DOCTEST_CHECK((sum / kDraws - whole).abs().max().item<double>() < 0.03);
  DOCTEST_CHECK((gone / kDraws - 0.25).abs().max().item<double>() < 0.04);
}
