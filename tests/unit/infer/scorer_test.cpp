// Perplexities that are known beforehand.
#include <doctest/doctest.h>

#include "infer/score/text_report.h"
#include "infer/score/tune.h"
#include "infer/sources/plan_axes.h"
#include "nn/heads/softmax_heads.h"
#include "tiny.h"

namespace {

using torch::Tensor;

// f is the last token, one-hot. With log-probabilities of pairs as the head's weights this is a
// bigram model.
class LastToken : public nn::Architecture {
 public:
  explicit LastToken(std::int64_t vocabulary) : vocabulary_(vocabulary) {}
  nn::Hidden forward(const nn::Batch& batch, nn::State*) override {
    const Tensor f = torch::one_hot(batch.inputs, vocabulary_).to(torch::kFloat32);
    return {f, f};
  }
  std::int64_t d_model() const override { return vocabulary_; }
  std::int64_t d_key() const override { return vocabulary_; }
  nn::Carry carry() const override { return nn::Carry::reencode; }
  std::shared_ptr<nn::Embedding> embedding() override { return nullptr; }

 private:
  std::int64_t vocabulary_;
};

nn::Model bigram_model(const Tensor& probabilities) {  // (previous, next)
  nn::ModelOptions options;
  options.shape.layers = 1, options.shape.d_model = probabilities.size(0);
  options.shape.heads = 1;
  options.vocabulary.tied = false;
  nn::Model model(options, probabilities.size(0));
  model.architecture = std::make_shared<LastToken>(probabilities.size(0));
  const torch::NoGradGuard no_gradient;
  model.head->weights().at(0).copy_(probabilities.log().t());
  return model;
}

int code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const core::Error& error) { return static_cast<int>(error.code()); }
  return 0;
}

}  // namespace

DOCTEST_TEST_CASE("a uniform model's perplexity is the size of its vocabulary") {
  for (const char* arch : {"transformer", "lstm"}) {
    nn::Model model = tiny::model_of(arch);
    const torch::NoGradGuard no_gradient;
    for (auto& weight : model.head->weights()) weight.zero_();
    const tiny::Shard shard(tiny::text_of({200}));
    const auto totals = infer::score(model, shard.data(), tiny::windows_of(16, 4), {}, torch::kCPU);
    DOCTEST_CHECK(totals.tokens == 199);
    DOCTEST_CHECK(totals.perplexity() == doctest::Approx(23).epsilon(1e-6));
  }
}

DOCTEST_TEST_CASE("a bigram model by hand: loss, perplexity, bits, all from one sum") {
  // p(1|0) = 0.5, p(2|1) = 0.25, p(0|2) = 0.8. The text is 0 1 2 0 1 2 ...
  const Tensor p = torch::tensor({{0.3, 0.5, 0.2}, {0.5, 0.25, 0.25}, {0.8, 0.1, 0.1}});
  nn::Model model = bigram_model(p);
  tiny::Text text;
  text.vocabulary = 3;
  text.bytes_per_token = 4, text.words_per_token = 2;
  auto& document = text.documents.emplace_back();
  for (std::uint32_t i = 0; i < 31; ++i) document.push_back(i % 3);
  const tiny::Shard shard(text);
  const double nats = -10 * (std::log(0.5) + std::log(0.25) + std::log(0.8));
  for (const std::int64_t stride : {1, 5, 8}) {
    const auto totals =
        infer::score(model, shard.data(), tiny::windows_of(8, stride), {}, torch::kCPU);
    DOCTEST_CHECK(totals.tokens == 30);
    DOCTEST_CHECK(totals.nats == doctest::Approx(nats).epsilon(1e-6));
    DOCTEST_CHECK(totals.perplexity() == doctest::Approx(std::pow(10, 1.0 / 3)).epsilon(1e-6));
    DOCTEST_CHECK(totals.bits_per_token() == doctest::Approx(nats / 30 / std::log(2)));
    // 31 tokens of 4 bytes and 2 words; the first token was not scored.
    DOCTEST_CHECK(totals.bytes == doctest::Approx(120));
    DOCTEST_CHECK(totals.bits_per_byte() == doctest::Approx(nats / 120 / std::log(2)));
    DOCTEST_CHECK(totals.bits_per_word() == doctest::Approx(nats / 60 / std::log(2)));
  }
}

DOCTEST_TEST_CASE("only marked tokens count, by hand, and what tuning says of them scoring finds") {
  const Tensor p = torch::tensor({{0.3, 0.5, 0.2}, {0.5, 0.25, 0.25}, {0.8, 0.1, 0.1}});
  nn::Model model = bigram_model(p);
  tiny::Text text;
  text.vocabulary = 3, text.marked = true;
  auto& document = text.documents.emplace_back();
  for (std::uint32_t i = 0; i < 31; ++i) document.push_back(i % 3);
  const tiny::Shard shard(text);
  double nats = 0;
  std::uint64_t tokens = 0;
  for (std::size_t i = 1; i < document.size(); ++i) {
    if (!tiny::Text::is_marked(i)) continue;
    nats -= std::log(p[document[i - 1]][document[i]].item<double>());
    ++tokens;
  }
  for (const std::int64_t stride : {1, 5, 8}) {
    auto windows = tiny::windows_of(8, stride);
    windows.learned = true;
    const auto totals = infer::score(model, shard.data(), windows, {}, torch::kCPU);
    DOCTEST_CHECK(totals.tokens == tokens);
    DOCTEST_CHECK(totals.nats == doctest::Approx(nats).epsilon(1e-6));
    DOCTEST_CHECK(totals.bytes == doctest::Approx(4.0 * static_cast<double>(tokens)));
  }
  // Memories contain all tokens.
  tiny::Text longer = tiny::text_of({150, 40});
  longer.marked = true;
  const tiny::Shard larger(longer);
  nn::Model memory_model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  auto windows = tiny::windows_of(16, 8);
  const auto memory = infer::plan_memory(tiny::memory_of("local,long", 60), windows, memory_model);
  double by_hand = 0;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    for (std::int64_t i = 0; i < scored.log_prob.size(0); ++i) {
      const auto at = scored.first + static_cast<std::uint64_t>(i);
      if (tiny::Text::is_marked(at < 150 ? at : at - 150))
        by_hand -= scored.log_prob[i].item<double>();
    }
  };
  infer::score(memory_model, larger.data(), windows, memory, torch::kCPU, watch);
  windows.learned = true;
  const auto totals = infer::score(memory_model, larger.data(), windows, memory, torch::kCPU);
  DOCTEST_CHECK(totals.nats == doctest::Approx(by_hand).epsilon(1e-9));
  infer::TuneOptions options;
  options.points["temperature"] = {0.7, 1.4};
  const auto tuned =
      infer::tune(memory_model, larger.data(), windows, memory, options, torch::kCPU);
  for (const auto& point : tuned.points) {
    const auto again =
        infer::score(memory_model, larger.data(), windows, tuned.at(point, memory), torch::kCPU);
    DOCTEST_CHECK(std::abs(again.loss() - point.loss) < 1e-9);
  }
}

DOCTEST_TEST_CASE("a beginning token has the first token scored too, once a stream") {
  const Tensor p = torch::tensor({{0.3, 0.5, 0.2}, {0.5, 0.25, 0.25}, {0.8, 0.1, 0.1}});
  nn::Model model = bigram_model(p);
  tiny::Text text;
  text.vocabulary = 3;
  text.documents = {{0, 1, 2}, {1, 0, 2}};  // 2 ends each
  const tiny::Shard shard(text);
  auto windows = tiny::windows_of(4, 4);
  windows.beginning = 2;
  const double first = std::log(0.8) + std::log(0.5) + std::log(0.25);
  const double second = std::log(0.1) + std::log(0.5) + std::log(0.2);
  for (const char* restart : {"none", "document"}) {
    windows.by_document = std::string(restart) == "document";
    const auto totals = infer::score(model, shard.data(), windows, {}, torch::kCPU);
    DOCTEST_CHECK(totals.tokens == 6);
    DOCTEST_CHECK(totals.bytes == doctest::Approx(24));
    DOCTEST_CHECK(totals.nats == doctest::Approx(-first - second).epsilon(1e-6));
  }
}

DOCTEST_TEST_CASE("every token but the first is scored once, whatever windows") {
  nn::Model model = tiny::model_of("transformer");
  const tiny::Shard shard(tiny::text_of({50, 0, 13, 40}));
  for (const char* restart : {"none", "document"}) {
    for (const auto& [window, stride] :
        std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {7, 7}, {7, 2}, {96, 50}}) {
      auto windows = tiny::windows_of(window, stride);
      windows.by_document = std::string(restart) == "document";
      std::vector<std::uint64_t> scored;
      infer::Callbacks watch;
      watch.scored = [&](const infer::Scored& block) {
        for (std::int64_t i = 0; i < block.targets.numel(); ++i)
          scored.push_back(block.first + static_cast<std::uint64_t>(i));
      };
      const auto totals = infer::score(model, shard.data(), windows, {}, torch::kCPU, watch);
      std::set<std::uint64_t> skipped = {0};
      if (windows.by_document) skipped = {0, 50, 63};
      std::vector<std::uint64_t> expected;
      for (std::uint64_t i = 0; i < 103; ++i)
        if (!skipped.count(i)) expected.push_back(i);
      DOCTEST_CHECK(scored == expected);
      DOCTEST_CHECK(totals.tokens == expected.size());
    }
  }
}

DOCTEST_TEST_CASE("scoring leaves a model in training as it was") {
  nn::Model model = tiny::model_of("transformer");
  model.train();
  const tiny::Shard shard(tiny::text_of({40}));
  const Tensor before =
      torch::get_num_threads() > 0 ? at::detail::getDefaultCPUGenerator().get_state() : Tensor();
  const auto first = infer::score(model, shard.data(), tiny::windows_of(8, 8), {}, torch::kCPU);
  const auto second = infer::score(model, shard.data(), tiny::windows_of(8, 8), {}, torch::kCPU);
  DOCTEST_CHECK(model.is_training());
  DOCTEST_CHECK(first.nats == second.nats);  // no dropout
  DOCTEST_CHECK(torch::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
  DOCTEST_CHECK(torch::GradMode::is_enabled());
}

DOCTEST_TEST_CASE("each point of the tuned grid is what a run of its own gives") {
  const tiny::Shard shard(tiny::text_of({150}));
  nn::Model model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  for (const char* combine : {"joint", "interpolate"}) {
    auto asked = tiny::memory_of("local,long", 60);
    tiny::cache(asked).positions = 40;
    tiny::context(asked).combine = combine;
    infer::TuneOptions options;
    options.points["temperature"] = {0.7, 1.4};
    options.points["theta"] = {0.03, 0.3};
    options.lambdas = {0, 0.2, 0.6};
    const auto windows = tiny::windows_of(16, 8);
    const auto memory = infer::plan_memory(asked, windows, model);
    const auto tuned = infer::tune(model, shard.data(), windows, memory, options, torch::kCPU);
    // Weights of 0.6 and 0.6 sum to more than 1.
    DOCTEST_CHECK(
        tuned.points.size() == (tiny::context(memory).interpolated() ? 2u * 2 * 8 : 2u * 2 * 3));
    double best = 1e9;
    for (const auto& point : tuned.points) {
      const auto at = tuned.at(point, memory);
      const auto totals = infer::score(model, shard.data(), windows, at, torch::kCPU);
      DOCTEST_CHECK(std::abs(totals.loss() - point.loss) < 1e-9);
      best = std::min(best, totals.loss());
    }
    DOCTEST_CHECK(std::abs(tuned.best.loss - best) < 1e-9);
    const auto again = infer::score(model, shard.data(), windows, tuned.memory, torch::kCPU);
    DOCTEST_CHECK(std::abs(again.loss() - best) < 1e-9);
    DOCTEST_CHECK(tuned.memory.tuned_on == infer::short_fingerprint(shard.data().fingerprint()));
    // One of two tried values is at the edge if it has an effect. One value has no edge.
    std::vector<std::string> edges;
    if (!tiny::context(memory).interpolated() || tiny::context(tuned.memory).lambda > 0)
      edges.push_back(fmt::format("--tune-temperatures {}", tuned.memory.joint_temperature));
    if (tiny::cache(tuned.memory).lambda > 0)
      edges.push_back(fmt::format("--tune-thetas {}", tiny::cache(tuned.memory).theta));
    DOCTEST_REQUIRE(!edges.empty());
    DOCTEST_REQUIRE(tuned.edges.size() >= edges.size());
    DOCTEST_CHECK(std::equal(edges.begin(), edges.end(), tuned.edges.begin()));
    auto one = options;
    one.points["temperature"] = {1.4}, one.points["theta"] = {0.3}, one.lambdas = {0};
    DOCTEST_CHECK(
        infer::tune(model, shard.data(), windows, memory, one, torch::kCPU).edges.empty());
    // As a file of options for another run, which may leave other options open.
    const auto settled = infer::settled(asked, tuned.memory);
    DOCTEST_CHECK(infer::signature({}, {}, windows, infer::plan_memory(settled, windows, model),
                      "float32") == infer::signature({}, {}, windows, tuned.memory, "float32"));
  }
  DOCTEST_CHECK(code_of([&] {
    infer::tune(model, shard.data(), tiny::windows_of(16, 8), {}, {}, torch::kCPU);
  }) == 64);
}

DOCTEST_TEST_CASE("where the best of a tuned grid is at its edge, what lies beyond is tried") {
  const tiny::Shard shard(tiny::text_of({150}));
  nn::Model model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  const auto windows = tiny::windows_of(16, 8);
  auto asked = tiny::memory_of("local,long", 60);
  tiny::context(asked).combine = "interpolate";
  auto memory = infer::plan_memory(asked, windows, model);
  const auto tuned_from = [&](double temperature, infer::TuneOptions options = {}) {
    memory.joint_temperature = temperature;
    return infer::tune(model, shard.data(), windows, memory, options, torch::kCPU);
  };
  infer::TuneOptions fine;
  for (double t = 1e-2; t < 1e4; t *= 1.05) fine.points["temperature"].push_back(t);
  const auto wanted = tuned_from(1, fine);
  DOCTEST_REQUIRE(wanted.edges.empty());
  // Beyond either end of the points, near and far.
  for (const double off : {0.03, 0.15, 6.0, 20.0}) {
    const auto tuned = tuned_from(wanted.memory.joint_temperature * off);
    DOCTEST_CHECK(tuned.edges.empty());
    const double ratio = tuned.memory.joint_temperature / wanted.memory.joint_temperature;
    DOCTEST_CHECK(std::max(ratio, 1 / ratio) < 1.3);
    DOCTEST_CHECK(tuned.best.loss < wanted.best.loss + 1e-3);
  }
  // The optimum is too far away, or the points were given: the edge is reported.
  DOCTEST_CHECK(tuned_from(wanted.memory.joint_temperature * 1e-4).edges.size() == 1);
  infer::TuneOptions given;
  const double best = wanted.memory.joint_temperature;
  given.points["temperature"] = {best / 4, best / 2};
  const auto held = tuned_from(1, given);
  DOCTEST_CHECK(held.points.size() == 2);
  DOCTEST_CHECK(held.edges.size() == 1);
  // If the memory is never right, nothing beyond is better.
  std::vector<std::uint32_t> once(23);
  std::iota(once.begin(), once.end(), 0U);
  tiny::Text all_new;
  all_new.vocabulary = 23;
  all_new.documents = {once};
  const tiny::Shard unseen(all_new);
  const auto idle = infer::tune(model, unseen.data(), windows, memory, {}, torch::kCPU);
  DOCTEST_CHECK(tiny::context(idle.memory).lambda == 0);
  DOCTEST_CHECK(idle.tried == infer::kTemperatureSteps.size());
  DOCTEST_CHECK(idle.edges.empty());
}

DOCTEST_TEST_CASE("breakdowns hold every token and the whole loss") {
  const tiny::Shard shard(tiny::text_of({50, 0, 13, 40})), counts(tiny::text_of({400, 30}, 23, 9));
  nn::Model model = tiny::model_of("transformer");
  std::vector<std::unique_ptr<infer::TextReport>> all;
  all.push_back(infer::loss_by_frequency(shard.data(), counts.data()));
  all.push_back(infer::loss_by_position(shard.data()));
  all.push_back(infer::loss_by_document(shard.data()));
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) {
    for (auto& breakdown : all) breakdown->add(scored);
  };
  const auto totals =
      infer::score(model, shard.data(), tiny::windows_of(16, 8), {}, torch::kCPU, watch);
  for (const auto& breakdown : all) {
    double nats = 0;
    std::uint64_t tokens = 0;
    for (const auto& row : breakdown->rows()) {
      nats += row["loss"].get<double>() * row["tokens"].get<double>();
      tokens += row["tokens"].get<std::uint64_t>();
    }
    DOCTEST_CHECK(tokens == totals.tokens);
    DOCTEST_CHECK(nats == doctest::Approx(totals.nats));
  }
  const auto documents = all[2]->rows();
  DOCTEST_REQUIRE(documents.size() == 3);
  DOCTEST_CHECK(documents[0]["tokens"] == 49);  // its first token is the stream's first
  DOCTEST_CHECK(documents[1]["bucket"] == "2");
  DOCTEST_CHECK(documents[1]["tokens"] == 13);
  const auto positions = all[1]->rows();
  DOCTEST_CHECK(positions[0]["bucket"] == "0");
  DOCTEST_CHECK(positions[0]["tokens"] == 2);  // of documents 2 and 3
  DOCTEST_CHECK(positions[2]["bucket"] == "2-3");
  DOCTEST_CHECK(positions[2]["tokens"] == 6);
}

DOCTEST_TEST_CASE("the signature names what changes the figure, and no more") {
  const nn::Model model = tiny::model_of("transformer");
  const auto windows = tiny::windows_of(32, 8);
  auto options = tiny::memory_of("local,long", 500);
  options.joint_temperature = 1.25;
  auto memory = infer::plan_memory(options, windows, model);
  const core::Digest a{1, 2}, b{3, 4};
  const std::string text = infer::signature(a, b, windows, memory, "float32");
  for (const char* part :
      {"data:000000000000|", "window:32|", "stride:8|", "reset:none|", "carry:off|",
          "memory:local+long|", "long:500|", "temperature:1.25|", "precision:float32|", "version:"})
    DOCTEST_CHECK(text.find(part) != text.npos);
  DOCTEST_CHECK(text.find("cache") == text.npos);
  tiny::cache(memory).positions = 10;
  DOCTEST_CHECK(infer::signature(a, b, windows, memory, "float32").find("cache:10|") != text.npos);
}

DOCTEST_TEST_CASE("options that are left open come from the model") {
  const nn::Model model = tiny::model_of("transformer");
  model::TrainingFacts facts;
  facts.memory = "local,long,ext", facts.segment = 24, facts.memory_temperature = 3;
  const auto windows = infer::plan_windows({}, model, facts);
  DOCTEST_CHECK(windows.window == 24);
  DOCTEST_CHECK(windows.stride == 24);
  DOCTEST_CHECK(!windows.carried);
  const auto planned = infer::plan_memory({}, windows, model, facts);
  DOCTEST_CHECK(tiny::context(planned).rule.name() == "local,long");
  DOCTEST_CHECK(tiny::context(planned).rule.reach == 96);
  DOCTEST_CHECK(planned.joint_temperature == 3);
  // Options that specify the whole plan use no facts of the model.
  const auto again = infer::plan_memory(infer::settled({}, planned), windows, model);
  DOCTEST_CHECK(tiny::context(again).rule.name() == "local,long");
  DOCTEST_CHECK(again.joint_temperature == 3);

  infer::MemoryOptions reach;
  reach.weights = "constant";
  tiny::context(reach).long_reach = "3seg";
  facts.memory = "local";
  const auto longer = infer::plan_memory(reach, windows, model, facts);
  DOCTEST_CHECK(tiny::context(longer).rule.name() == "local,long");
  DOCTEST_CHECK(tiny::context(longer).rule.reach == 72);

  DOCTEST_CHECK(infer::plan_windows({}, tiny::model_of("lstm")).carried);
  // A State that forgets keeps half a window by default.
  for (const char* architecture : {"mosaic", "mosaic2"}) {
    infer::WindowOptions options;
    options.carry = "on", options.window = 24;
    const auto carried = infer::plan_windows(options, tiny::model_of(architecture));
    DOCTEST_CHECK((carried.carried && carried.window == 24 && carried.stride == 12));
  }
  // The calibrated temperature takes precedence over the training temperature, and a flag over
  // both.
  for (const double given : {0.0, 1.25}) {
    infer::MemoryOptions memory;
    memory.weights = "constant";
    memory.joint_temperature = given;
    facts.all["joint_temperature"] = 4;
    DOCTEST_CHECK(infer::plan_memory(memory, windows, model, facts).joint_temperature ==
                  (given > 0 ? given : 4));
  }
}

DOCTEST_TEST_CASE("what contradicts itself or the model is refused") {
  const nn::Model learned = tiny::model_of("transformer");
  const auto refused =
      [&](const std::function<void(infer::WindowOptions&, infer::MemoryOptions&)>& change) {
        infer::WindowOptions windows;
        windows.window = 16, windows.stride = 8;
        infer::MemoryOptions memory;
        memory.weights = "constant";
        change(windows, memory);
        return code_of(
            [&] { infer::plan_memory(memory, infer::plan_windows(windows, learned), learned); });
      };
  DOCTEST_CHECK(refused([](auto&, auto&) {}) == 0);
  DOCTEST_CHECK(refused([](auto& w, auto&) { w.window = 97; }) == 64);  // 96 positions
  DOCTEST_CHECK(refused([](auto& w, auto&) { w.stride = 17; }) == 64);
  DOCTEST_CHECK(refused([](auto& w, auto&) { w.carry = "on"; }) == 64);
  for (const double temperature : {1e-300, 1e-40, 9e-7}) {
    DOCTEST_CHECK(refused([&](auto&, auto& m) { m.joint_temperature = temperature; }) == 64);
    DOCTEST_CHECK(
        refused([&](auto&, auto& m) { tiny::stores(m).temperature = temperature; }) == 64);
  }
  DOCTEST_CHECK(refused([](auto&, auto& m) { m.joint_temperature = 1e-6; }) == 0);
  DOCTEST_CHECK(refused([](auto&, auto& m) { tiny::context(m).memory = "ext"; }) == 64);
  DOCTEST_CHECK(refused([](auto&, auto& m) { tiny::context(m).memory = "far"; }) == 64);
  DOCTEST_CHECK(refused([](auto&, auto& m) {
    tiny::context(m).memory = "local", tiny::context(m).long_reach = "5";
  }) == 64);
  for (const char* reach : {"0", "x", "4sag", "seg", "-3", "99999999999999seg"})
    DOCTEST_CHECK(refused([&](auto&, auto& m) {
      tiny::context(m).memory = "long", tiny::context(m).long_reach = reach;
    }) == 64);
  DOCTEST_CHECK(refused([](auto&, auto& m) {
    tiny::cache(m).positions = 5, tiny::cache(m).lambda = 1;
  }) == 64);
  DOCTEST_CHECK(refused([](auto&, auto& m) { tiny::context(m).combine = "interpolate"; }) == 64);
}

DOCTEST_TEST_CASE("data that cannot be scored") {
  nn::Model model = tiny::model_of("transformer");
  const auto windows = tiny::windows_of(8, 8);
  for (const auto& lengths : std::vector<std::vector<std::size_t>>{{}, {0}, {1}}) {
    const tiny::Shard shard(tiny::text_of(lengths));
    DOCTEST_CHECK(
        code_of([&] { infer::score(model, shard.data(), windows, {}, torch::kCPU); }) == 65);
  }
  const tiny::Shard larger(tiny::text_of({50}, 60));
  DOCTEST_CHECK(
      code_of([&] { infer::score(model, larger.data(), windows, {}, torch::kCPU); }) == 65);
}
