// Texts drawn on a device that reports what the host waits for.

#include <doctest/doctest.h>

#include "device/recording.h"
#include "infer/generate/generator.h"
#include "text/formats/tokenizer_json.h"
#include "unit/infer/tiny.h"

namespace {

model::Loaded loaded_on(torch::Device device, const std::string& arch) {
  model::Loaded loaded;
  loaded.folder = "tiny";
  loaded.model = std::make_shared<nn::Model>(tiny::model_of(arch, "rope", 300));
  loaded.model->to(device);
  loaded.tokenizer = text::load_tokenizer("bytes")->json();
  return loaded;
}

struct Drawn {
  std::map<std::pair<std::uint64_t, std::int64_t>, infer::Sample> samples;
  std::vector<std::vector<std::string>> waits;  // of each step
};

Drawn texts_on(torch::Device device, const infer::GeneratorOptions& options,
    const std::string& arch = "transformer", const std::string& memory = "none") {
  Drawn drawn;
  infer::Generator generator(loaded_on(device, arch), options, tiny::memory_of(memory), device);
  infer::GeneratorCallbacks watch;
  watch.finished = [&](const infer::Sample& sample) {
    drawn.samples[{sample.prompt, sample.sample}] = sample;
  };
  watch.progress = [&](std::uint64_t) { drawn.waits.push_back(pretend::take_waits()); };
  auto prompts =
      infer::PromptReader(std::vector<std::string>{"The cat sat on", "a", "12 34"}).next(3);
  if (!options.searches()) prompts[1].temperature = 0;
  generator.run(prompts, watch);
  return drawn;
}

void expect_same(const Drawn& here, const Drawn& there) {
  DOCTEST_REQUIRE(here.samples.size() == there.samples.size());
  for (const auto& [key, sample] : here.samples) {
    const auto& other = there.samples.at(key);
    DOCTEST_CHECK(sample.tokens == other.tokens);
    DOCTEST_CHECK(sample.text == other.text);
    DOCTEST_CHECK(std::abs(sample.log_prob - other.log_prob) < 1e-3);
  }
}

infer::GeneratorOptions options_of(double temperature, std::int64_t top_k, double top_p) {
  infer::GeneratorOptions options;
  options.max_tokens = 20, options.samples = 2;
  options.draw.temperature = temperature, options.draw.top_k = top_k, options.draw.top_p = top_p;
  return options;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a text drawn on a device is the CPU's, and a token is one wait for its numbers") {
  const nn::CudaKernels kernels = pretend::recording_kernels();
  const auto device = pretend::device();
  const nn::AsDevice as(&kernels, device.type());
  for (const auto& options : {options_of(1, 0, 1), options_of(0.7, 5, 1), options_of(1.3, 0, 0.8),
           options_of(1, 30, 0.5), options_of(0, 0, 1)}) {
    const auto here = texts_on(torch::kCPU, options), there = texts_on(device, options);
    expect_same(here, there);
    for (std::size_t step = 1; step < there.waits.size(); ++step)
      DOCTEST_CHECK((there.waits[step] == std::vector<std::string>{"an event"}));
  }
}

DOCTEST_TEST_CASE("a beam finds on a device what it finds on the CPU") {
  const nn::CudaKernels kernels = pretend::recording_kernels();
  const auto device = pretend::device();
  const nn::AsDevice as(&kernels, device.type());
  auto options = options_of(1, 0, 1);
  options.beam = 3;
  for (const char* const arch : {"transformer", "gla", "mosaic", "srupp"})
    expect_same(texts_on(torch::kCPU, options, arch), texts_on(device, options, arch));
}

DOCTEST_TEST_CASE("what a memory adds is drawn from on a device too") {
  const auto device = pretend::device();
  const nn::AsDevice as(nullptr, device.type());
  const auto options = options_of(1, 20, 0.9);
  for (const char* const arch : {"transformer", "transformer-xl", "gla", "mosaic2"})
    expect_same(
        texts_on(torch::kCPU, options, arch, "local"), texts_on(device, options, arch, "local"));
}
