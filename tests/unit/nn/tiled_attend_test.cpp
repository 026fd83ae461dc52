// Attention with dropout in tiles, compared with the whole matrix in float64, and the stream of
// dropout masks.

#include "nn/ops/tiled_attend.h"

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "plain_kept.h"
#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

struct AttendSizes {
  std::int64_t rows, heads, queries, slots, width;
};

Tensor kept_of(const AttendSizes& s, double p, std::uint64_t seed) {
  return plain::kept(s.rows, s.heads, s.queries, s.slots, nn::DropoutStream(p, seed));
}

Tensor attend_whole(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const nn::TiledAttend& o) {
  const AttendSizes s{q.size(0), q.size(1), q.size(2), k.size(2), q.size(3)};
  auto scores = o.scale * torch::matmul(q, k.transpose(2, 3));
  if (mask.defined()) scores = scores + mask.to(torch::kFloat64);
  if (o.causal)
    scores = scores.masked_fill(
        torch::ones({s.queries, s.slots}, torch::kBool).triu(s.slots - s.queries + 1), -1e300);
  return torch::matmul(scores.softmax(-1) * kept_of(s, o.dropout, o.seed), v);
}

using Way = Tensor (*)(
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const nn::TiledAttend&);

// Returns the output and the gradients of q, k, v.
std::vector<Tensor> results(Way way, const AttendSizes& s, const Tensor& mask,
    const nn::TiledAttend& o, torch::ScalarType type) {
  torch::manual_seed(3);
  std::vector<Tensor> in;
  for (const auto n : {s.queries, s.slots, s.slots})  // layers' layout: (B, n, heads, width)
    in.push_back(torch::randn({s.rows, n, s.heads, s.width}, torch::kFloat64).to(type));
  for (auto& x : in) x = x.transpose(1, 2).set_requires_grad(true);
  const auto out = way(in[0], in[1], in[2], mask, o);
  const auto direction = torch::randn(out.sizes(), torch::kFloat64).to(type);
  std::vector<Tensor> all{out.detach()};
  for (const auto& d : torch::autograd::grad({(out * direction).sum()}, in)) all.push_back(d);
  return all;
}

void check(const AttendSizes& s, const Tensor& mask, const nn::TiledAttend& o) {
  const auto got = results(nn::tiled_attend, s, mask, o, torch::kFloat32);
  const auto want = results(attend_whole, s, mask, o, torch::kFloat64);
  for (std::size_t i = 0; i < want.size(); ++i) {
    DOCTEST_CAPTURE(i);
    DOCTEST_CAPTURE(s.queries);
    DOCTEST_CAPTURE(s.slots);
    DOCTEST_CAPTURE(s.width);
    DOCTEST_CAPTURE(o.dropout);
    DOCTEST_CHECK(got[i].sizes() == want[i].sizes());
    DOCTEST_CHECK(gap(got[i].to(torch::kFloat64), want[i]) < 2e-5);
  }
}

const std::vector<AttendSizes> kAttendSizes = {{1, 1, 1, 1, 16}, {2, 3, 7, 7, 5},
    {1, 2, 48, 48, 64}, {2, 1, 49, 97, 16}, {1, 2, 130, 403, 8}, {1, 1, 801, 801, 33}};

// A model whose attention has an effect.
std::shared_ptr<nn::Model> attending(const nn::ModelOptions& options, torch::ScalarType type) {
  const torch::NoGradGuard no_gradient;
  auto model = properties::strong_model(options);
  model->to(type);
  for (const auto& item : model->named_parameters())
    if (item.key().find("rezero") != std::string::npos) item.value().fill_(0.7);
  return model;
}

double share_of(const Tensor& x) { return x.to(torch::kFloat64).mean().item<double>(); }

}  // namespace

DOCTEST_TEST_CASE("attention with dropout in tiles is that of whole matrices, with gradients") {
  for (const auto& sizes : kAttendSizes)
    for (const double dropout : {0.0, 0.05, 0.5})
      for (const bool causal : {false, true})
        check(sizes, {}, {0.3, causal, dropout, 0x123456789abcdefu});
}

DOCTEST_TEST_CASE("attention with dropout under masks of a head, of a row, of all") {
  for (const AttendSizes& s : {AttendSizes{2, 3, 7, 9, 16}, AttendSizes{2, 2, 60, 500, 8}}) {
    torch::manual_seed(5);
    // Slot 0 is visible; the last tile of slots is invisible to some queries.
    const auto hide = [&](const Tensor& mask) {
      auto hidden = torch::rand(mask.sizes()) < 0.3;
      hidden.select(3, 0).fill_(false);
      if (s.slots > 400) hidden.narrow(3, 380, 120).select(2, 0).fill_(true);
      return mask.masked_fill(hidden, -1e30);
    };
    for (const auto& mask : {torch::randn({s.rows, s.heads, s.queries, s.slots}),
             torch::randn({s.rows, 1, s.queries, s.slots}),
             torch::randn({1, 1, s.queries, s.slots}), torch::randn({s.rows, 1, 1, s.slots})})
      check(s, hide(mask), {0.5, false, 0.25, 7});
  }
}

DOCTEST_TEST_CASE("without a share to drop it is torch's attention") {
  torch::manual_seed(1);
  const auto q = torch::randn({2, 3, 50, 16}), k = torch::randn({2, 3, 50, 16}),
             v = torch::randn({2, 3, 50, 16});
  const auto got = nn::tiled_attend(q, k, v, {}, {0.25, true, 0, 9});
  DOCTEST_CHECK(gap(got, torch::scaled_dot_product_attention(q, k, v, {}, 0.0, true)) < 1e-5);
}

DOCTEST_TEST_CASE("dropout's stream: the share asked for, nothing alike about neighbours") {
  const AttendSizes s{2, 3, 40, 1000, 1};
  const double n = 2 * 3 * 40 * 1000;
  for (const double p : {0.05, 0.5}) {
    const auto gone = kept_of(s, p, 11) == 0;
    const double five = 5 * std::sqrt(p * (1 - p) / n);  // standard deviations of a share
    DOCTEST_CAPTURE(p);
    DOCTEST_CHECK(std::abs(share_of(gone) - p) < five);
    // Both of a pair are dropped: the square of the share.
    const auto both = [&](const Tensor& a, const Tensor& b) { return share_of(a & b); };
    const auto close = [&](double share) { return std::abs(share - p * p) < 1.5 * five; };
    for (const int apart : {1, 2, 16}) {
      DOCTEST_CAPTURE(apart);
      DOCTEST_CHECK(
          close(both(gone.narrow(3, 0, 1000 - apart), gone.narrow(3, apart, 1000 - apart))));
      DOCTEST_CHECK(close(both(gone.narrow(2, 0, 40 - apart), gone.narrow(2, apart, 40 - apart))));
    }
    DOCTEST_CHECK(close(both(gone.narrow(1, 0, 2), gone.narrow(1, 1, 2))));
    DOCTEST_CHECK(close(both(gone[0], gone[1])));
    for (const std::uint64_t other : {12u, 10u, 0u})
      DOCTEST_CHECK(close(both(gone, kept_of(s, p, other) == 0)));
    // No slot and no query is dropped too often.
    const auto most = [&](std::vector<std::int64_t> over, double count) {
      const auto share = gone.to(torch::kFloat64).mean(over);
      return (share - p).abs().max().item<double>() / std::sqrt(p * (1 - p) / count);
    };
    DOCTEST_CHECK(most({0, 1, 2}, 240) < 6.5);
    DOCTEST_CHECK(most({3}, 1000) < 6.5);
  }
}

DOCTEST_TEST_CASE("dropout's stream drops a share that is exact to 2^-32") {
  for (const double p : {0.0, 1.0 / 3, 0.05, 0.999999}) {
    const nn::DropoutStream stream(p, 3);
    DOCTEST_CAPTURE(p);
    DOCTEST_CHECK(std::abs(stream.share() - p) <= std::ldexp(1, -32));
    DOCTEST_CHECK(stream.scale() == doctest::Approx(1 / (1 - p)).epsilon(1e-7));
    const auto row = stream.row(5, 7);
    const std::uint32_t n = 1u << 22;
    std::int64_t gone = 0;
    for (std::uint32_t slot = 0; slot < n; ++slot) gone += row.drops(slot) ? 1 : 0;
    DOCTEST_CHECK(std::abs(static_cast<double>(gone) / n - p) <= 5 * std::sqrt(p * (1 - p) / n));
  }
}

DOCTEST_TEST_CASE("attention with dropout: a seed says all, whatever the number of threads") {
  const AttendSizes s{2, 3, 100, 100, 16};
  const nn::TiledAttend options{0.25, true, 0.5, 21};
  const auto once = results(nn::tiled_attend, s, {}, options, torch::kFloat32);
  const auto threads = torch::get_num_threads();
  for (const int n : {1, 2, 5}) {
    torch::set_num_threads(n);
    const auto again = results(nn::tiled_attend, s, {}, options, torch::kFloat32);
    for (std::size_t i = 0; i < once.size(); ++i) DOCTEST_CHECK(once[i].equal(again[i]));
  }
  torch::set_num_threads(threads);
  auto other = options;
  other.seed = 22;
  DOCTEST_CHECK(!once[0].equal(results(nn::tiled_attend, s, {}, other, torch::kFloat32)[0]));
  torch::manual_seed(4);
  const auto first = nn::draw_seed(), second = nn::draw_seed();
  torch::manual_seed(4);
  DOCTEST_CHECK(first == nn::draw_seed());
  DOCTEST_CHECK(first != second);
}

DOCTEST_TEST_CASE("relative attention with dropout in blocks is that of whole matrices") {
  const std::int64_t rows = 2, heads = 3, steps = 70, slots = 150, width = 5;
  for (const std::int64_t before : {-1, 40}) {
    torch::manual_seed(6);
    std::vector<Tensor> exact, rounded;
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{rows, steps, heads, width},
             {rows, steps, heads, width}, {rows, slots, 2, heads, width}, {slots, heads, width}}) {
      exact.push_back(torch::randn(shape, torch::kFloat64).set_requires_grad(true));
      rounded.push_back(exact.back().detach().to(torch::kFloat32).set_requires_grad(true));
    }
    const auto first = torch::tensor({0, 30}, torch::kInt64);
    const auto got = nn::relative_attend_blocks(
        rounded[0], rounded[1], rounded[2], rounded[3], first, before, 0.4, 0.25, 17);
    const auto distance = (torch::arange(steps).unsqueeze(1) + slots - steps -
                           torch::arange(slots).unsqueeze(0));  // (T, S)
    const auto r = exact[3].index({(slots - 1 - distance).clamp(0, slots - 1)});
    auto scores = torch::einsum("bthw,bshw->bhts", {exact[0], exact[2].select(2, 0)}) +
                  torch::einsum("bthw,tshw->bhts", {exact[1], r});
    auto hidden = (distance < 0).unsqueeze(0) |
                  (torch::arange(slots).view({1, 1, slots}) < first.view({rows, 1, 1}));
    if (before >= 0) hidden = hidden | (distance > before).unsqueeze(0);
    scores = (0.4 * scores).masked_fill(hidden.unsqueeze(1), -1e300);
    const auto weights =
        scores.softmax(-1) * plain::kept(rows, heads, steps, slots, nn::DropoutStream(0.25, 17));
    const auto want = torch::einsum("bhts,bshw->bthw", {weights, exact[2].select(2, 1)});
    DOCTEST_CAPTURE(before);
    DOCTEST_CHECK(gap(got.detach().to(torch::kFloat64), want.detach()) < 1e-5);
    const auto direction = torch::randn(want.sizes(), torch::kFloat64);
    const auto d_want = torch::autograd::grad({(want * direction).sum()}, exact);
    const auto d_got = torch::autograd::grad({(got * direction).sum()}, rounded);
    for (std::size_t i = 0; i < exact.size(); ++i)
      DOCTEST_CHECK(gap(d_got[i].to(torch::kFloat64), d_want[i]) < 2e-5);
  }
}

DOCTEST_TEST_CASE(
    "layers with dropout in attention: the same result in tiles, whole, on a device") {
  struct Way {
    torch::ScalarType type;
    bool device;
    double close;
  };
  for (const std::string arch : {"transformer", "mosaic", "srupp", "transformer-xl"})
    for (const Way& way : {Way{torch::kFloat32, false, 1e-4}, Way{torch::kFloat64, false, 1e-10},
             Way{torch::kFloat64, true, 1e-10}})
      for (const std::int64_t d : {8, 64}) {
        auto options = properties::small_options(arch);
        options.shape.d_model = d;
        options.shape.attention_dropout = 1e-12;  // in effect none, but not zero
        const auto model = attending(options, way.type);
        const auto real = properties::random_ids(7, 21);
        auto padded = properties::random_ids(7, 22);
        padded[0] = padded[1] = properties::kPad;
        for (const auto& rows : {std::vector{real, properties::random_ids(7, 23)},
                 std::vector{real, padded}, std::vector(8, real)}) {
          const auto batch = properties::batch_of(rows);
          model->eval();
          const auto expected = model->architecture->forward(batch, nullptr).output;
          model->train();
          std::optional<nn::AsDevice> device;
          if (way.device) device.emplace();
          const auto got = model->architecture->forward(batch, nullptr).output;
          DOCTEST_CAPTURE(arch);
          DOCTEST_CAPTURE(d);
          DOCTEST_CAPTURE(way.device);
          DOCTEST_CHECK(gap(got, expected) < way.close);
        }
      }
}

DOCTEST_TEST_CASE("layers draw another mask each call, and the same from the same generator") {
  for (const std::string arch : {"transformer", "mosaic", "srupp", "transformer-xl"}) {
    auto options = properties::small_options(arch);
    options.shape.d_model = 64;
    options.shape.attention_dropout = 0.3;
    const auto model = attending(options, torch::kFloat32);
    model->train();
    const auto batch = properties::batch_of(std::vector(4, properties::random_ids(9, 24)));
    const auto run = [&] { return model->architecture->forward(batch, nullptr).output; };
    torch::manual_seed(8);
    const auto first = run(), second = run();
    DOCTEST_CAPTURE(arch);
    DOCTEST_CHECK(!first.equal(second));
    DOCTEST_CHECK(!first[0].equal(first[1]));
    torch::manual_seed(8);
    DOCTEST_CHECK(first.equal(run()));
  }
}
