// The options that each architecture's facts name are those that change what it computes.

#include <doctest/doctest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "properties.h"

namespace {

// The weights, and what two calls in training mode compute from them.
std::vector<torch::Tensor> computed(const nn::ModelOptions& options) {
  torch::manual_seed(1);
  nn::Model model(options, properties::kVocabulary);
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> all;
  for (auto& [name, weight] : model.named_weights()) {
    weight.add_(torch::randn_like(weight), 0.3);
    all.push_back(weight);
  }
  auto batch = properties::batch_of({properties::random_ids(24, 1)}, /*fresh=*/false);
  const bool reads = nn::arch_facts(options.arch).reads_source;
  if (reads) batch.source = properties::batch_of({properties::random_ids(5, 2)}).inputs;
  torch::manual_seed(2);
  nn::State state;
  for (int call = 0; call < (reads ? 1 : 2); ++call) {
    const auto hidden = model.architecture->forward(batch, reads ? nullptr : &state);
    all.push_back(hidden.output), all.push_back(hidden.key);
  }
  return all;
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.sizes() == y.sizes() && x.equal(y); });
}

// Whether some accepted value of the option changes what is computed.
bool matters(const nn::ModelOptions& options, const std::string& name) {
  const auto plain = computed(options);
  const auto differs = [&](const std::string& value) {
    auto other = options;
    const auto fields = core::list_fields(other);
    try {
      core::assign(*std::ranges::find(fields.all(), name, &core::Field::name), {value});
      return !same(plain, computed(other));
    } catch (const core::Error&) { return false; }
  };
  return std::ranges::any_of(
      std::vector<std::string>{"on", "off", "1", "2", "3", "8", "50", "0.25", "output", "rope",
          "post", "relu", "sum", "none", "window", "long=4 short=2", "segments", "fenwick"},
      differs);
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

DOCTEST_TEST_CASE("an architecture's facts name the options that it uses") {
  std::set<std::string> names;
  for (const auto& arch : nn::architecture_names())
    for (const auto& name : words_of(nn::arch_facts(arch).options)) names.insert(name);
  for (const auto& arch : nn::architecture_names()) {
    DOCTEST_CAPTURE(arch);
    auto options = properties::small_options(arch);
    options.transformer.context = 64;
    options.gla.update = "delta";
    options.layer_memory.layer_memory = "8";
    options.mosaic2.short_term = 4, options.mosaic2.delay = 2, options.mosaic2.most_delay = 6;
    options.state_memory.every = 4;
    const auto matters_with = [&](const std::string& name, const std::string& memory) {
      auto other = options;
      other.state_memory.kind = memory;
      return matters(other, name);
    };
    const auto own = words_of(nn::arch_facts(arch).options);
    for (const auto& name : names) {
      DOCTEST_REQUIRE(
          std::ranges::count(core::list_fields(options).all(), name, &core::Field::name) == 1);
      DOCTEST_CAPTURE(name);
      if (arch != "hybrid" || name == "mixer")
        DOCTEST_CHECK((matters(options, name) || matters_with(name, "segments") ||
                          matters_with(name, "fenwick")) == (std::ranges::count(own, name) == 1));
    }
  }
}

DOCTEST_TEST_CASE("options that the architecture does not use are named") {
  using Names = std::vector<std::string>;
  nn::ModelOptions options;
  DOCTEST_CHECK(nn::unused_options(options).empty());
  options.mixers.window = 3;
  DOCTEST_CHECK(nn::unused_options(options) == Names{"mixer-window"});
  options.arch = "hybrid", options.shape.heads = 2, options.mixers.state = 5;
  options.mixers.list = "window,retnet", options.gla.convolution = 2;
  DOCTEST_CHECK(nn::unused_options(options) == Names{"gla-convolution", "channel-state"});
  options.mixers.list = "window,delta";
  DOCTEST_CHECK(nn::unused_options(options) == Names{"channel-state"});
  options.shape.layers = 1;
  DOCTEST_CHECK(nn::unused_options(options) == Names{"gla-convolution", "channel-state"});
  options.mixers.list = "s4d", options.shape.layers = 4;
  DOCTEST_CHECK(nn::unused_options(options) == Names{"heads", "gla-convolution", "mixer-window"});
}
