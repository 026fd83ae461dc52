// Work that is recorded once and replayed, and work that cannot be recorded.

#include "nn/base/fixed_sequence.h"

#include <doctest/doctest.h>

#include "device/recording.h"
#include "nn/base/runtime.h"
#include "nn/base/upload.h"

namespace {

struct Pretended {
  torch::Device device = pretend::device();
  nn::CudaKernels kernels = pretend::recording_kernels();
  nn::AsDevice as{&kernels, device.type()};
  torch::Tensor on(const torch::Tensor& x) const { return nn::upload(x, device); }
};

}  // namespace

DOCTEST_TEST_CASE("a sequence is the host's work at first, then the device's alone") {
  const Pretended there;
  nn::FixedSequence sequence(there.device);
  const auto x = there.on(torch::zeros({3}));
  torch::Tensor y;
  int runs = 0;
  for (int i = 0; i < 6; ++i) {
    x.fill_(i);
    sequence.run([&] {
      ++runs;
      y = x * 2 + there.on(torch::tensor({1.F, 2.F, 3.F}));
      x.add_(y);
    });
    DOCTEST_CHECK(torch::equal(y.cpu(), torch::tensor({1.F, 2.F, 3.F}) + 2 * i));
    DOCTEST_CHECK(torch::equal(x.cpu(), torch::tensor({1.F, 2.F, 3.F}) + 3 * i));
  }
  DOCTEST_CHECK(sequence.recorded());
  DOCTEST_CHECK(runs == nn::FixedSequence::kWarmUp + 1);
  sequence.reset();
  sequence.run([&] { ++runs; });
  DOCTEST_CHECK_FALSE(sequence.recorded());
  DOCTEST_CHECK(runs == nn::FixedSequence::kWarmUp + 2);
}

DOCTEST_TEST_CASE("masks are drawn anew each time, as the seed says that stands then") {
  const Pretended there;
  nn::FixedSequence sequence(there.device);
  const auto x = there.on(torch::ones({50}));
  const auto drop = [&] { return torch::dropout(x, 0.5, true) + torch::dropout(x, 0.5, true); };
  torch::Tensor mask;
  const auto recorded = [&] {
    sequence.run([&] { mask = drop(); });
    return mask.cpu();
  };
  for (const std::uint64_t seed : {1, 2, 3, 2}) {
    torch::manual_seed(seed);
    const auto first = recorded(), second = recorded();
    torch::manual_seed(seed);
    DOCTEST_CHECK(torch::equal(first, drop().cpu()));
    DOCTEST_CHECK(torch::equal(second, drop().cpu()));
    DOCTEST_CHECK_FALSE(torch::equal(first, second));
  }
  DOCTEST_CHECK(sequence.recorded());
}

DOCTEST_TEST_CASE("what waits, is told something new, or fails runs as it comes") {
  const Pretended there;
  const auto x = there.on(torch::ones({30}));
  int i = 0;
  const auto runs = [&](const std::function<void()>& work) {
    nn::FixedSequence sequence(there.device);
    for (i = 0; i < 5; ++i) sequence.run(work);
    return sequence.recorded();
  };
  DOCTEST_CHECK(runs([&] { x.add(1); }));
  DOCTEST_CHECK_FALSE(runs([&] { x.sum().item<float>(); }));
  DOCTEST_CHECK_FALSE(runs([&] { x.gt(0).nonzero(); }));
  DOCTEST_CHECK_FALSE(runs([&] { there.on(torch::full({2}, i)); }));
  DOCTEST_CHECK_FALSE(runs([&] { x.copy_(torch::ones({30}).pin_memory(), true); }));
  nn::FixedSequence waiting(there.device);
  for (const std::uint64_t seed : {1, 2, 3, 4}) {  // work that was not recorded has drawn nothing
    torch::Tensor mask;
    torch::manual_seed(seed);
    waiting.run([&] { mask = torch::dropout(x, 0.5, true), x.sum().item<float>(); });
    torch::manual_seed(seed);
    DOCTEST_CHECK(torch::equal(mask, torch::dropout(x, 0.5, true)));
  }
  nn::FixedSequence broken(there.device), off(there.device, /*record=*/false);
  const auto fail = [&] {
    if (i > 1) throw std::runtime_error("no more");
  };
  for (i = 0; i < 2; ++i) broken.run(fail);
  DOCTEST_CHECK_THROWS(broken.run(fail));
  DOCTEST_CHECK_THROWS(broken.run(fail));
  for (i = 0; i < 5; ++i) off.run([&] { x.add(1); });
  DOCTEST_CHECK_FALSE(off.recorded());
}

DOCTEST_TEST_CASE("what cannot be recorded says why, once") {
  const Pretended there;
  std::vector<std::string> notes;
  nn::start(at::get_num_threads(), 1, [&](const std::string& note) { notes.push_back(note); });
  const auto x = there.on(torch::ones({30}));
  nn::FixedSequence good(there.device), waiting(there.device);
  for (int i = 0; i < 5; ++i) {
    good.run([&] { x.add(1); });
    waiting.run([&] { x.sum().item<float>(); });
  }
  nn::start(at::get_num_threads(), 1);
  DOCTEST_REQUIRE(notes.size() == 1);
  DOCTEST_CHECK(notes[0].find("--cuda-graph: recording failed") == 0);
  DOCTEST_CHECK(notes[0].find("a number cannot be recorded") != std::string::npos);
  DOCTEST_CHECK(notes[0].find('\n') == std::string::npos);
}
