#include "train/learner.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "train/plan.h"
#include "unit/thrown.h"
#include "unit/train/tiny.h"

namespace {

// Returns the weights after some steps of a learner on its own order.
std::vector<torch::Tensor> after(const train::Job& job, std::int64_t updates) {
  nn::start(1, job.seed);
  auto run = train::prepare(job);
  train::Learner learner(run.model, run.recipe, run.order->carries(), run.seed, torch::kCPU,
      ranks::Group::alone(), run.record, run.part, run.thrift);
  std::int64_t index = 0;
  for (std::int64_t step = 0; step < updates; ++step) {
    std::vector<train::MicroBatch> micro;
    for (std::int64_t k = 0; k < run.recipe.batches.accumulate; ++k, ++index) {
      micro.push_back(train::read_batch(*run.data, run.order->rows(index), index));
      train::apply(run.rules, micro.back());
    }
    learner.update(step, micro);
  }
  std::vector<torch::Tensor> weights;
  for (const auto& [name, weight] : learner.model().named_weights())
    weights.push_back(weight.detach().clone());
  return weights;
}

double distance(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  return most;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a run's weights are those of plain updates in double precision, by each optimiser") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  tiny::write_text(folder / "marked", 1500, 1, true);
  constexpr std::int64_t kSteps = 6;
  for (const std::string name : {"adamw", "adam", "radam", "nag"}) {
    DOCTEST_CAPTURE(name);
    auto job = tiny::job(folder);
    // The loss of a marked text covers only the marked targets.
    const bool marked = name == "adam";
    if (marked) job.shards = {folder / "marked"};
    job.model.shape.dropout = 0;
    auto& recipe = job.recipe;
    recipe.steps = kSteps;
    recipe.batches.batch = 3, recipe.batches.accumulate = 2;
    recipe.objective.plain_warmup = 0;
    recipe.optimiser.optimiser = name;
    recipe.optimiser.lr = 0.01, recipe.optimiser.weight_decay = 0.2;
    recipe.optimiser.decay = "matrices", recipe.optimiser.epsilon = 1e-3;
    recipe.optimiser.beta2 = 0.95, recipe.optimiser.momentum = 0.9;
    recipe.optimiser.clip = name == "adamw" || name == "radam" ? 0.05 : 0;
    recipe.schedule.schedule = "cosine";
    recipe.schedule.warmup = 2, recipe.schedule.min_lr = 0.001;
    recipe.schedule.warmup_init_lr = 0.002;
    const auto found = after(job, kSteps);

    nn::start(1, job.seed);
    auto run = train::prepare(job);
    nn::Model& model = *run.model;
    DOCTEST_REQUIRE(model.head->linear());
    model.to(torch::kFloat64);
    model.train();
    auto weights = model.named_weights();
    std::vector<torch::Tensor> m, v;
    for (const auto& [key, weight] : weights) {
      m.push_back(torch::zeros_like(weight));
      v.push_back(torch::zeros_like(weight));
    }
    const auto& o = recipe.optimiser;
    double before = 0;
    std::int64_t index = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const double lr =
          step < 2
              ? 0.002 + (0.01 - 0.002) * static_cast<double>(step) / 2
              : 0.001 + (0.01 - 0.001) *
                            (1 + std::cos(std::acos(-1.0) * static_cast<double>(step - 2) / 4)) / 2;
      std::int64_t scored = 0;
      for (auto& [key, weight] : weights) weight.mutable_grad() = torch::zeros_like(weight);
      for (std::int64_t k = 0; k < 2; ++k, ++index) {
        auto batch = train::read_batch(*run.data, run.order->rows(index), index).batch;
        for (std::int64_t r = 0; marked && r < batch.weight.size(0); ++r)
          for (std::int64_t i = 0; i < batch.weight.size(1); ++i) {
            const auto target = batch.place.position[r][i].item<std::int64_t>() + 1;
            if (!data::is_marked(static_cast<std::uint64_t>(target))) batch.weight[r][i] = 0;
          }
        const auto f = model.architecture->forward(batch, nullptr).output.flatten(0, 1);
        const auto targets = batch.targets.flatten().unsqueeze(1);
        const auto scores = f.matmul(model.head->weights()[0].t());
        const auto own = torch::log_softmax(scores, 1).gather(1, targets).squeeze(1);
        (-(own * batch.weight.flatten().to(torch::kFloat64)).sum()).backward();
        scored += batch.weight.sum().item<std::int64_t>();
      }
      const torch::NoGradGuard no_gradient;
      double norm = 0;
      for (const auto& [key, weight] : weights) norm += weight.grad().pow(2).sum().item<double>();
      norm = std::sqrt(norm) / static_cast<double>(scored);
      DOCTEST_CHECK(norm > 0.05);  // otherwise nothing would be clipped
      const double clip = o.clip > 0 ? std::min(1.0, o.clip / norm) : 1;
      const double scale = clip / static_cast<double>(scored);
      const double t = static_cast<double>(step) + 1;
      const double c1 = 1 - std::pow(o.beta1, t), c2 = 1 - std::pow(o.beta2, t);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        auto w = weights[i].second;
        const auto g = w.grad() * scale;
        if (w.dim() >= 2) w.mul_(1 - lr * o.weight_decay);
        if (name == "nag") {
          const double c = step == 0 ? 1 : lr / before;
          w.add_(0.81 * c * m[i] - 1.9 * lr * g);
          m[i] = 0.9 * c * m[i] - lr * g;
          continue;
        }
        m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
        v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
        const double most = 2 / (1 - o.beta2) - 1, r = most - 2 * t * (1 - c2) / c2;
        if (name == "adamw") {
          w.sub_(lr * (m[i] / c1) / ((v[i] / c2).sqrt() + o.epsilon));
        } else if (name == "adam" || r >= 5) {
          const double share =
              name == "adam" ? 1
                             : std::sqrt((r - 4) * (r - 2) * most / ((most - 4) * (most - 2) * r));
          w.sub_(lr * share * std::sqrt(c2) / c1 * m[i] / (v[i].sqrt() + o.epsilon));
        } else {
          w.sub_(lr * m[i] / c1);
        }
      }
      before = lr;
    }
    std::vector<torch::Tensor> expected;
    for (const auto& [key, weight] : weights) expected.push_back(weight.detach());
    DOCTEST_CHECK(distance(found, expected) < 2e-6);
  }
}

DOCTEST_TEST_CASE("without memory, accumulated micro-batches are one batch, whatever their sizes") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto whole = tiny::job(folder);
  whole.recipe.batches.batches = "sequential";
  whole.model.shape.dropout = 0;
  whole.recipe.objective.plain_warmup = 0;
  auto parts = whole;
  parts.recipe.batches.batch = 2;
  parts.recipe.batches.accumulate = 3;
  DOCTEST_CHECK(distance(after(whole, 3), after(parts, 3)) < 1e-5);
  // With memory the results differ: micro-batches do not see each other.
  whole.recipe.objective.memory = parts.recipe.objective.memory = "long";
  DOCTEST_CHECK(distance(after(whole, 3), after(parts, 3)) > 1e-4);
}

DOCTEST_TEST_CASE("columns in lanes learn what they learn in one, but for rounding") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  for (const char* arch : {"transformer-xl", "lstm"}) {
    auto whole = tiny::job(folder);
    whole.model.arch = arch;
    whole.recipe.batches.batches = "streams";
    whole.recipe.objective.memory = "long";
    whole.recipe.objective.memory_previous = 2;
    whole.recipe.objective.plain_warmup = 0;
    whole.model.shape.dropout = 0;
    auto batch_shards = whole;
    batch_shards.recipe.batches.batch_shards = 3;
    DOCTEST_CAPTURE(arch);
    DOCTEST_CHECK(distance(after(whole, 9), after(batch_shards, 9)) < 1e-4);
    // They see different tokens of other columns.
    whole.recipe.objective.memory = batch_shards.recipe.objective.memory = "local,ext";
    DOCTEST_CHECK(distance(after(whole, 9), after(batch_shards, 9)) > 1e-3);
  }
}

DOCTEST_TEST_CASE(
    "the first updates are plain, the coin falls as often as it should, once a micro-batch") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.objective.memory = "local,ext";
  job.recipe.objective.plain_warmup = 0.25;
  job.recipe.steps = 40;
  nn::start(1, 1);
  auto run = train::prepare(job);
  const train::Learner learner(run.model, run.recipe, false, 1, torch::kCPU);
  DOCTEST_CHECK(!learner.rule(9, 9).any());
  DOCTEST_CHECK(learner.rule(10, 10).any());
  int dropped = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    dropped += learner.rule(20, i).drop_own_segment;
    DOCTEST_CHECK(learner.rule(20, i).drop_own_segment == learner.rule(30, i).drop_own_segment);
  }
  DOCTEST_CHECK(dropped == doctest::Approx(1800).epsilon(0.02));
}

DOCTEST_TEST_CASE("--recompute: the same weights to the bit, with dropout and memories") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.model.shape.layers = 3;
  job.model.shape.attention_dropout = 0.1;
  job.recipe.objective.plain_warmup = 1;
  job.recipe.batches.accumulate = 3;
  const auto check = [&] {
    auto thrifty = job;
    thrifty.thrift.recompute = true;
    const auto want = after(job, 3), got = after(thrifty, 3);
    DOCTEST_REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) DOCTEST_CHECK(torch::equal(got[i], want[i]));
  };
  job.recipe.objective.memory = "local,ext";
  check();
  job.recipe.objective.memory = "local,long";
  job.recipe.batches.batches = "streams";
  job.model.transformer.positions = "rope";  // its keys are carried
  check();
  job.model.arch = "gla";
  job.thrift.recompute = true;
  DOCTEST_CHECK(thrown([&] { after(job, 1); }).names("--recompute: "));
}

DOCTEST_TEST_CASE("clipping bounds the update, and the norm reported is that before it") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.optimiser.optimiser = "nag";
  job.recipe.optimiser.weight_decay = 0;
  job.recipe.optimiser.momentum = 1e-9;
  job.recipe.optimiser.lr = 1;
  job.recipe.optimiser.clip = 1e-3;
  job.recipe.schedule.warmup = 0;
  nn::start(1, 1);
  auto run = train::prepare(job);
  train::Learner learner(run.model, run.recipe, false, 1, torch::kCPU);
  std::vector<torch::Tensor> before;
  for (const auto& [name, weight] : run.model->named_weights())
    before.push_back(weight.detach().clone());
  const auto update = learner.update(0, {train::read_batch(*run.data, run.order->rows(0), 0)});
  double square = 0;
  std::size_t i = 0;
  for (const auto& [name, weight] : run.model->named_weights())
    square += (weight.detach() - before[i++]).to(torch::kFloat64).pow(2).sum().item<double>();
  DOCTEST_CHECK(std::sqrt(square) == doctest::Approx(1e-3).epsilon(1e-3));
  DOCTEST_CHECK(update.norm.item<double>() > 0.1);
  DOCTEST_CHECK(update.scored == 72);
  DOCTEST_CHECK(update.loss.item<double>() / 72 == doctest::Approx(std::log(40)).epsilon(0.1));
}

DOCTEST_TEST_CASE("bfloat16 products learn much the same") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.model.shape.d_model = 64;  // products of small matrices are not rounded
  job.recipe.steps = 40;
  tiny::train(folder / "float32", job);
  job.recipe.precision = "bfloat16";
  tiny::train(folder / "bfloat16", job);
  const auto a = tiny::losses(folder / "float32"), b = tiny::losses(folder / "bfloat16");
  // bfloat16 has three digits.
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / a[i]);
  DOCTEST_MESSAGE("bfloat16 moved the loss by " << most);
  DOCTEST_CHECK(most > 1e-4);
  DOCTEST_CHECK(a.back() == doctest::Approx(b.back()).epsilon(0.05));
}

DOCTEST_TEST_CASE("tokens that are not learned stay in the memories of those that are") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "marked", 1500, 1, true);
  for (const std::string memory : {"none", "local", "local,long", "local,ext"}) {
    DOCTEST_CAPTURE(memory);
    auto job = tiny::job(folder);
    job.shards = {folder / "marked"};
    job.model.shape.dropout = 0;
    job.recipe.objective.memory = memory;
    job.recipe.objective.plain_warmup = 0, job.recipe.objective.drop_local = 0;
    // Returns the sums over a micro-batch's tokens that `learned` computes for all tokens and for
    // the marked ones.
    const auto loss = [&](auto learned) {
      nn::start(1, job.seed);
      auto run = train::prepare(job);
      train::Learner learner(run.model, run.recipe, false, run.seed, torch::kCPU);
      auto micro = train::read_batch(*run.data, run.order->rows(0), 0);
      const auto all = micro.batch.weight.clone();
      train::apply(run.rules, micro);
      micro.batch.weight = learned(all, micro.batch.weight);
      micro.tokens = micro.batch.weight.sum().template item<std::int64_t>();
      const auto update = learner.update(0, {micro});
      DOCTEST_CHECK(update.scored == micro.tokens);
      return update.loss.template item<double>();
    };
    const double whole = loss([](const auto& all, const auto&) { return all; });
    const double marked = loss([](const auto&, const auto& own) { return own; });
    const double others = loss([](const auto& all, const auto& own) { return all - own; });
    DOCTEST_CHECK(marked > 0);
    DOCTEST_CHECK(others > marked);
    DOCTEST_CHECK(marked + others == doctest::Approx(whole).epsilon(1e-5));
  }
}

DOCTEST_TEST_CASE("a run that diverges says so") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  auto job = tiny::job(folder);
  job.recipe.optimiser.lr = 1e30;
  try {
    tiny::train(folder / "run", job);
    DOCTEST_FAIL("not noticed");
  } catch (const core::Error& error) {
    DOCTEST_CHECK(std::string(error.what()).find("not finite") != std::string::npos);
  }
}

DOCTEST_TEST_CASE(
    "the loss falls on real text, with and without memory, "
    "and the best model by validation is kept") {
  std::ifstream file("LICENSE");
  std::stringstream text;
  text << file.rdbuf();
  if (text.str().size() < 8000) {
    DOCTEST_MESSAGE("SKIP: no LICENSE to learn from in the working folder");
    return;
  }
  const TemporaryFolder folder;
  const std::string all = text.str();
  const auto bytes = [&](std::size_t begin, std::size_t end) {
    return std::vector<std::uint64_t>(all.begin() + static_cast<std::ptrdiff_t>(begin),
        all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  data::write_shard(folder / "text", data::tokens_header(256), bytes(0, 6000));
  data::write_shard(folder / "valid", data::tokens_header(256), bytes(6000, 8000));
  for (const std::string memory : {"none", "local,long"}) {
    auto job = tiny::job(folder);
    job.model.shape.d_model = 32;
    job.model.transformer.context = 64;
    job.recipe.batches.segment = 48;
    job.recipe.steps = 60;
    job.recipe.objective.memory = memory;
    job.valid = folder / "valid";
    tiny::train(folder / memory, job);
    const auto losses = tiny::losses(folder / memory);
    DOCTEST_CHECK(losses.front() > 4.5);
    DOCTEST_CHECK(losses.back() < 3.3);
    const auto valid = tiny::losses(folder / memory, "valid_loss");
    DOCTEST_REQUIRE(valid.size() == 10);
    DOCTEST_CHECK(valid.back() < valid.front());
  }
}

DOCTEST_TEST_CASE("validation that grows worse leaves the best weights") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  std::vector<std::uint64_t> contrary = {1};  // these continuations never occur in the text
  while (contrary.size() < 300) contrary.push_back((contrary.back() * 7 + 20) % 40);
  data::write_shard(folder / "valid", data::tokens_header(40), contrary);
  auto job = tiny::job(folder);
  job.recipe.steps = 40;
  tiny::train(folder / "last", job);
  job.valid = folder / "valid";
  job.recipe.valid_every = 10;
  tiny::train(folder / "best", job);
  const auto valid = tiny::losses(folder / "best", "valid_loss");
  DOCTEST_REQUIRE(valid.size() == 4);
  DOCTEST_CHECK(valid.back() > valid.front());
  DOCTEST_CHECK(tiny::files(folder / "best").at("model.safetensors") !=
                tiny::files(folder / "last").at("model.safetensors"));
  // Validation does not change the training.
  DOCTEST_CHECK(tiny::losses(folder / "best") == tiny::losses(folder / "last"));
}

DOCTEST_TEST_CASE("a plan counts what the run will take") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text", 1500);
  auto job = tiny::job(folder);
  job.recipe.steps = 0;
  job.recipe.epochs = 2;
  nn::start(1, 1);
  auto run = train::prepare(job);
  const auto model = run.model;
  train::TokenObjective objective(std::move(run));
  const auto plan = train::plan(objective, {});
  DOCTEST_CHECK(plan["parameters"].get<std::int64_t>() == model->parameter_count());
  DOCTEST_CHECK(
      plan["steps"].get<std::int64_t>() == 42);  // 1,499 targets: 125 segments, 21 batches
  DOCTEST_CHECK(plan["tokens"].get<std::int64_t>() == 2998);
  DOCTEST_CHECK(plan["optimiser_bytes"].get<std::int64_t>() == 8 * model->parameter_count());
  DOCTEST_CHECK(plan["hours"].get<double>() > 0);
}

DOCTEST_TEST_CASE("a batch job asks for more than was measured, in Slurm's words") {
  const core::OrderedJson plan{{"peak_memory_bytes", 1024 << 20}, {"hours", 2.5}};
  DOCTEST_CHECK(train::sbatch_line(plan, 16, /*gpu=*/false) ==
                "--cpus-per-task=16 --mem=1536M --time=3:55:00\n");
  const core::OrderedJson longer{{"peak_memory_bytes", (1024 << 20) + 1}, {"hours", 100.001}};
  DOCTEST_CHECK(train::sbatch_line(longer, 2, /*gpu=*/true) ==
                "--cpus-per-task=2 --mem=1537M --time=150:11:00 --gpus-per-node=1\n");
}
