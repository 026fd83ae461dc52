// The blocked loss, compared with a plain loss with whole matrices, values and gradients, for every
// rule.
#include <doctest/doctest.h>

#include "device/pretend_device.h"
#include "nn/heads/softmax_heads.h"
#include "nn/memory/joint_loss.h"
#include "plain_sees.h"

namespace {

using torch::Tensor;

// A straightforward softmax.
class SmallHead : public nn::Head {
 public:
  SmallHead(std::int64_t vocabulary, std::int64_t width, torch::Dtype dtype)
      : weight(register_parameter("weight", torch::randn({vocabulary, width}, dtype))) {}
  Tensor weight;
  bool used_tf32 = false;

  struct Block : nn::HeadBlock {
    Tensor f, weight, softmax, targets;
    Tensor backward(
        const Tensor& d_log_prob, const Tensor& d_log_z, std::vector<Tensor>& gradients) override {
      Tensor d = softmax * (d_log_z - d_log_prob).unsqueeze(1);
      d.scatter_add_(1, targets.unsqueeze(1), d_log_prob.unsqueeze(1));
      gradients[0].add_(d.t().mm(f));
      return d.mm(weight);
    }
  };
  std::int64_t vocabulary() const override { return weight.size(0); }
  std::vector<Tensor> weights() override { return {weight}; }
  std::unique_ptr<nn::HeadBlock> block(const Tensor& f, const nn::Targets& targets, bool) override {
    torch::NoGradGuard guard;
    auto made = std::make_unique<Block>();
    const Tensor logits = f.mm(weight.t());
    made->log_z = logits.logsumexp(1);
    made->log_prob = logits.gather(1, targets.there.unsqueeze(1)).squeeze(1) - made->log_z;
    made->softmax = logits.softmax(1);
    made->f = f.detach(), made->weight = weight.detach(), made->targets = targets.there;
    used_tf32 = at::globalContext().allowTF32CuBLAS();
    return made;
  }
  Tensor log_probs(const Tensor& f, Tensor*) override { return f.mm(weight.t()).log_softmax(1); }
  std::int64_t bytes_per_row() const override { return weight.size(0) * 4; }
};

struct LossCase {
  std::string name;
  nn::MemoryRule rule;
};

// Three runs; the second has two segments; a padding token ends the third.
nn::Batch random_batch(std::int64_t vocabulary, torch::Dtype dtype, bool padding = true) {
  nn::Batch batch;
  const std::int64_t rows = 4, steps = 6;
  batch.targets = torch::randint(vocabulary, {rows, steps}, torch::kInt64);
  batch.inputs = batch.targets;
  batch.weight = torch::rand({rows, steps}, dtype);
  const auto grid = torch::arange(rows * steps).view({rows, steps});
  batch.place.run =
      torch::tensor({0, 1, 1, 2}, torch::kInt64).unsqueeze(1).expand({rows, steps}).clone();
  batch.place.segment = torch::arange(rows).unsqueeze(1).expand({rows, steps}).clone();
  batch.place.position = grid.clone();
  if (padding) {
    batch.place.run.index_put_({3, 5}, -1);
    batch.weight.index_put_({3, 5}, 0);
  }
  return batch;
}

// Row i, entry j in two loops; autograd computes the gradient.
Tensor plain_loss(const Tensor& f, const Tensor& g, const nn::Batch& batch, SmallHead& head,
    const nn::MemoryRule& rule, const nn::Entries& carried) {
  const Tensor rows = f.flatten(0, 1), queries = g.flatten(0, 1), targets = batch.targets.flatten();
  const Tensor weight = batch.weight.flatten();
  const nn::TokenPositions place = batch.place.flatten();
  Tensor keys = rule.gradient ? queries : queries.detach(), labels = targets;
  nn::TokenPositions places = place;
  if (carried.size() > 0) {
    keys = torch::cat({keys, rule.gradient ? carried.keys : carried.keys.detach()});
    labels = torch::cat({labels, carried.labels});
    places = nn::TokenPositions::concatenate({place, carried.place});
  }
  const double scale =
      1 / (rule.temperature * (rule.scale_by_width ? std::sqrt(double(queries.size(1))) : 1.0));
  Tensor total = torch::zeros({}, f.options());
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    const Tensor logits = head.weight.mv(rows[i]);
    std::vector<Tensor> all{logits}, right{logits[targets[i].item<std::int64_t>()].unsqueeze(0)};
    std::vector<std::pair<double, std::int64_t>> seen;
    std::vector<Tensor> scores(labels.size(0));
    const auto id = [](const Tensor& t, std::int64_t k) { return t[k].item<std::int64_t>(); };
    const auto at = [&](const nn::TokenPositions& p, std::int64_t k) {
      return nn::TokenPosition{id(p.run, k), id(p.segment, k), id(p.position, k)};
    };
    for (std::int64_t j = 0; j < labels.size(0); ++j) {
      if (!plain::sees(rule, at(place, i), at(places, j))) continue;
      scores[j] = rule.metric == nn::Metric::ip ? queries[i].dot(keys[j]) * scale
                                                : -(queries[i] - keys[j]).square().sum() * scale;
      seen.emplace_back(-scores[j].item<double>(), j);
    }
    std::sort(seen.begin(), seen.end());
    if (rule.top_k > 0 && std::int64_t(seen.size()) > rule.top_k) seen.resize(rule.top_k);
    for (const auto& [_, j] : seen) {
      all.push_back(scores[j].unsqueeze(0));
      if (id(labels, j) == id(targets, i)) right.push_back(scores[j].unsqueeze(0));
    }
    total = total + weight[i] * (torch::cat(all).logsumexp(0) - torch::cat(right).logsumexp(0));
  }
  return total;
}

double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) {  // an absent gradient is zero
    const Tensor& there = a.defined() ? a : b;
    return there.defined() ? there.abs().max().item<double>() : 0.0;
  }
  return ((a - b).abs() / (1 + b.abs())).max().item<double>();
}

void check_equal(const nn::MemoryRule& rule, torch::Dtype dtype, double tolerance,
    const nn::Batch& batch, std::int64_t vocabulary, nn::Entries carried,
    std::int64_t block_bytes) {
  const std::int64_t width = 5, key_width = 4;
  SmallHead head(vocabulary, width, dtype);
  const auto rows = batch.rows(), steps = batch.steps();
  const Tensor f = torch::randn({rows, steps, width}, dtype).requires_grad_();
  const Tensor g = torch::randn({rows, steps, key_width}, dtype).mul_(2).detach().requires_grad_();
  if (carried.size() == 0) carried.keys = torch::zeros({0, key_width}, dtype);
  carried.keys.requires_grad_();  // as entries from other processes
  const auto gradients = [&](const Tensor& loss) {
    const std::vector<Tensor> all{f, g, head.weight, carried.keys};
    for (const Tensor& tensor : all) tensor.mutable_grad() = Tensor();
    (loss * 0.25).backward();
    std::vector<Tensor> found;
    for (const Tensor& tensor : all)
      found.push_back(tensor.grad().defined() ? tensor.grad().clone() : Tensor());
    return found;
  };
  const auto entries = nn::Entries::concatenate({nn::Entries::of(g, batch), carried});
  const Tensor fast = nn::joint_loss(f, g, batch, head, rule, entries, {block_bytes});
  const auto fast_gradients = gradients(fast);
  const Tensor plain = plain_loss(f, g, batch, head, rule, carried);
  const auto plain_gradients = gradients(plain);
  DOCTEST_CHECK(difference(fast, plain) < tolerance);
  for (std::size_t k = 0; k < 4; ++k)
    DOCTEST_CHECK(difference(fast_gradients[k], plain_gradients[k]) < tolerance);
  torch::NoGradGuard guard;
  DOCTEST_CHECK(difference(nn::joint_loss(f, g, batch, head, rule, entries, {block_bytes}), plain) <
                tolerance);
}

std::vector<LossCase> all_rules() {
  std::vector<LossCase> cases;
  for (const char* names :
      {"none", "local", "long", "ext", "local,long", "local,ext", "long,ext", "local,long,ext"}) {
    nn::MemoryRule rule = nn::MemoryRule::parse(names);
    cases.push_back({names, rule});
    rule.drop_own_segment = true;
    cases.push_back({std::string(names) + " dropped", rule});
  }
  nn::MemoryRule rule = nn::MemoryRule::parse("local,ext");
  rule.temperature = 1.7;
  cases.push_back({"temperature", rule});
  rule.metric = nn::Metric::l2;
  cases.push_back({"l2", rule});
  rule.scale_by_width = false;
  cases.push_back({"not scaled by width", rule});
  rule.gradient = false;
  cases.push_back({"l2, no gradient into memory", rule});
  rule.metric = nn::Metric::ip;
  cases.push_back({"no gradient into memory", rule});
  rule.gradient = true;
  rule.top_k = 3;
  cases.push_back({"top 3", rule});
  rule = nn::MemoryRule::parse("long");
  rule.reach = 3;
  cases.push_back({"reach 3", rule});
  return cases;
}

nn::Entries carried_entries(std::int64_t vocabulary, torch::Dtype dtype) {
  nn::Entries entries;
  entries.keys = torch::randn({7, 4}, dtype);
  entries.labels = torch::randint(vocabulary, {7}, torch::kInt64);
  const auto ids = [](std::vector<std::int64_t> v) { return torch::tensor(v, torch::kInt64); };
  entries.place = {
      ids({1, 1, 1, 2, 5, -1, 0}), ids({1, 90, 90, 90, 91, 0, 0}), ids({-5, -4, -3, 2, 3, 4, 900})};
  return entries;
}

}  // namespace

DOCTEST_TEST_CASE("joint loss equals the plain one for every rule, in values and gradients") {
  torch::manual_seed(3);
  for (const auto& c : all_rules()) {
    DOCTEST_CAPTURE(c.name);
    for (const std::int64_t block_bytes : {std::int64_t{1}, std::int64_t{1} << 26}) {
      check_equal(
          c.rule, torch::kFloat64, 1e-10, random_batch(9, torch::kFloat64), 9, {}, block_bytes);
      check_equal(
          c.rule, torch::kFloat32, 1e-5, random_batch(9, torch::kFloat32), 9, {}, block_bytes);
      check_equal(c.rule, torch::kFloat64, 1e-10, random_batch(9, torch::kFloat64), 9,
          carried_entries(9, torch::kFloat64), block_bytes);
    }
  }
}

DOCTEST_TEST_CASE("joint loss: one word, one token, all labels equal") {
  torch::manual_seed(4);
  for (const auto& c : all_rules()) {
    DOCTEST_CAPTURE(c.name);
    check_equal(c.rule, torch::kFloat64, 1e-10, random_batch(1, torch::kFloat64), 1, {}, 1 << 20);
    nn::Batch equal = random_batch(9, torch::kFloat64);
    equal.targets.fill_(4);
    check_equal(c.rule, torch::kFloat64, 1e-10, equal, 9, {}, 1 << 20);
    nn::Batch one = random_batch(9, torch::kFloat64, false);
    for (Tensor* t : {&one.inputs, &one.targets, &one.weight, &one.place.run, &one.place.segment,
             &one.place.position})
      *t = t->slice(0, 0, 1).slice(1, 0, 1).clone();
    check_equal(c.rule, torch::kFloat64, 1e-10, one, 9, {}, 1 << 20);
  }
}

DOCTEST_TEST_CASE("a query that sees no memory has the head's own log-probability") {
  torch::manual_seed(5);
  SmallHead head(9, 5, torch::kFloat64);
  nn::Batch batch = random_batch(9, torch::kFloat64, false);
  const Tensor f = torch::randn({4, 6, 5}, torch::kFloat64),
               g = torch::randn({4, 6, 4}, torch::kFloat64);
  nn::MemoryRule rule = nn::MemoryRule::parse("local");
  rule.drop_own_segment = true;
  const auto entries = nn::Entries::of(g, batch);
  const double with = nn::joint_loss(f, g, batch, head, rule, entries).item<double>();
  const double without = nn::joint_loss(f, g, batch, head, {}, {}).item<double>();
  DOCTEST_CHECK(with == doctest::Approx(without).epsilon(1e-14));
}

DOCTEST_TEST_CASE("blocks take a small share of a device's memory, whatever it has") {
  constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;
  DOCTEST_CHECK(nn::loss_block_bytes(0) == 64 * kMiB);
  DOCTEST_CHECK(nn::loss_block_bytes(kGiB) == 64 * kMiB);
  DOCTEST_CHECK(nn::loss_block_bytes(24 * kGiB) == 384 * kMiB);
  DOCTEST_CHECK(nn::loss_block_bytes(1024 * kGiB) == 4 * kGiB);
  for (std::int64_t memory = kGiB; memory < 600 * kGiB; memory += kGiB)
    DOCTEST_CHECK(nn::loss_block_bytes(memory) <= memory / 16);
}

DOCTEST_TEST_CASE("TF32 is for a device's products of the loss alone, and only if asked for") {
  const nn::Batch host = random_batch(9, torch::kFloat32);
  for (const auto device : {torch::Device(torch::kCPU), pretend::device()}) {
    for (const bool asked : {false, true}) {
      SmallHead head(9, 5, torch::kFloat32);
      head.to(device);
      const nn::Batch batch = host.to(device);
      const Tensor f = torch::randn({4, 6, 5}).to(device);
      nn::joint_loss(f, f, batch, head, {}, {}, {.tf32 = asked});
      DOCTEST_CHECK(head.used_tf32 == (asked && !device.is_cpu()));
      DOCTEST_CHECK_FALSE(at::globalContext().allowTF32CuBLAS());
    }
  }
}

DOCTEST_TEST_CASE("the gradient of a loss can be taken once") {
  SmallHead head(9, 5, torch::kFloat32);
  const nn::Batch batch = random_batch(9, torch::kFloat32);
  const Tensor f = torch::randn({4, 6, 5}).requires_grad_();
  const Tensor loss = nn::joint_loss(f, f, batch, head, {}, {});
  loss.backward({}, /*retain_graph=*/true);
  DOCTEST_CHECK_THROWS_AS(loss.backward(), core::Error);
}

DOCTEST_TEST_CASE("label smoothing equals the plain formula, in values and gradients") {
  torch::manual_seed(6);
  const std::int64_t vocabulary = 9, width = 5;
  nn::PlainHead head(vocabulary, width);
  head.to(torch::kFloat64);
  const Tensor words = head.weights()[0];
  words.data().normal_();
  const nn::Batch batch = random_batch(vocabulary, torch::kFloat64);
  const Tensor f = torch::randn({4, 6, width}, torch::kFloat64).requires_grad_();
  const auto gradients = [&](const Tensor& loss) {
    for (const Tensor& tensor : {f, words}) tensor.mutable_grad() = Tensor();
    (loss * 0.25).backward();
    return std::vector<Tensor>{f.grad().clone(), words.grad().clone()};
  };
  for (const double smoothing : {0.0, 0.1, 0.7}) {
    // fairseq: the target keeps 1 - E, all others share E.
    Tensor wanted = torch::full({24, vocabulary}, smoothing / (vocabulary - 1), torch::kFloat64);
    wanted.scatter_(1, batch.targets.flatten().unsqueeze(1), 1 - smoothing);
    const Tensor log_p = f.flatten(0, 1).mm(words.t()).log_softmax(1);
    const Tensor plain = -((wanted * log_p).sum(1) * batch.weight.flatten()).sum();
    const auto plain_gradients = gradients(plain);
    for (const std::int64_t block_bytes : {1, 1 << 26}) {
      DOCTEST_CAPTURE(block_bytes);
      const Tensor fast = nn::smoothed_loss(f, batch, head, smoothing, {block_bytes});
      const auto fast_gradients = gradients(fast);
      DOCTEST_CHECK(difference(fast, plain) < 1e-10);
      for (std::size_t k = 0; k < 2; ++k)
        DOCTEST_CHECK(difference(fast_gradients[k], plain_gradients[k]) < 1e-10);
      const torch::NoGradGuard no_gradient;
      DOCTEST_CHECK(
          difference(nn::smoothed_loss(f, batch, head, smoothing, {block_bytes}), plain) < 1e-10);
    }
  }
}
