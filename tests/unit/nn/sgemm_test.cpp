// The process's matrix product, compared with one that adds terms in double precision.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/product/sgemm.h"
#include "nn/product/sgemm_kernels.h"

namespace {

using torch::Tensor;

// Restores the previous setting after a test.
struct Taken {
  explicit Taken(bool on) { nn::take_products(on); }
  ~Taken() { nn::take_products(nn::products_pay()); }
};

struct Threads {
  int before = at::get_num_threads();
  explicit Threads(int n) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before); }
};

// C (m, n) in rows of n + 3, from A (m, k) and B (k, n), each transposed or not.
struct ProductCase {
  int m, n, k;
  bool turned_a, turned_b;
  float scale, keep;

  std::string name() const {
    return fmt::format(
        "{} x {} of {} terms, A {}, B {}, kept {}", m, n, k, turned_a, turned_b, keep);
  }
  Tensor a() const { return torch::linspace(-1, 1, m * k).sin().view({m, k}) * 3; }
  Tensor b() const { return torch::linspace(-2, 1, k * n).cos().view({k, n}) * 2; }
  Tensor before() const { return torch::linspace(-5, 5, m * (n + 3)).view({m, n + 3}); }

  Tensor expected() const {
    return expected_of(torch::mm(a().to(torch::kFloat64), b().to(torch::kFloat64)) * scale);
  }
  Tensor expected_of_rounded() const {
    const auto rounded = [](const Tensor& x) { return x.to(torch::kBFloat16).to(torch::kFloat64); };
    return expected_of(torch::mm(rounded(a() * scale), rounded(b())));
  }
  Tensor expected_of(const Tensor& product) const {
    auto all = before().to(torch::kFloat64);
    auto c = all.narrow(1, 0, n);
    c.copy_(keep == 0 ? product : c * keep + product);
    return all;
  }
  Tensor found() const {
    const auto lie = [](const Tensor& x, bool turned) { return (turned ? x.t() : x).contiguous(); };
    const auto first = lie(a(), turned_a), second = lie(b(), turned_b);
    auto all = before();
    if (keep == 0) all.narrow(1, 0, n).fill_(std::numeric_limits<float>::quiet_NaN());
    const char turn_a = turned_a ? 'T' : 'N', turn_b = turned_b ? 'T' : 'N';
    const int row_a = static_cast<int>(first.size(1)), row_b = static_cast<int>(second.size(1)),
              row_c = n + 3;
    sgemm_(&turn_b, &turn_a, &n, &m, &k, &scale, second.data_ptr<float>(), &row_b,
        first.data_ptr<float>(), &row_a, &keep, all.data_ptr<float>(), &row_c);
    return all;
  }
};

}  // namespace

DOCTEST_TEST_CASE(
    "products of any shape are those of double precision, and write nothing beside them") {
  const Taken taken(true);
  for (const auto& [m, n, k] : std::vector<std::array<int, 3>>{{64, 64, 64}, {67, 131, 97},
           {385, 65, 41}, {33, 1030, 300}, {200, 527, 513}, {160, 40, 70}, {1, 7, 5}})
    for (const bool turned_a : {false, true})
      for (const bool turned_b : {false, true})
        for (const auto& [scale, keep] :
            std::vector<std::array<float, 2>>{{1, 0}, {1, 1}, {0.5, 1}, {2, 0.5}}) {
          const ProductCase c{m, n, k, turned_a, turned_b, scale, keep};
          DOCTEST_CAPTURE(c.name());
          DOCTEST_CHECK((c.found() - c.expected()).abs().max().item<double>() < 1e-5 * k);
        }
}

DOCTEST_TEST_CASE("rounded products are those of factors in bfloat16, with sums in float32") {
  for (const bool taken_too : {false, true}) {
    const Taken taken(taken_too);
    const nn::RoundedProducts rounded(true);
    for (const auto& [m, n, k] : std::vector<std::array<int, 3>>{
             {64, 64, 64}, {67, 131, 97}, {385, 65, 41}, {33, 1030, 300}, {200, 527, 513}})
      for (const bool turned_a : {false, true})
        for (const bool turned_b : {false, true})
          for (const auto& [scale, keep] :
              std::vector<std::array<float, 2>>{{1, 0}, {1, 1}, {0.3f, 1}}) {
            const ProductCase c{m, n, k, turned_a, turned_b, scale, keep};
            DOCTEST_CAPTURE(c.name());
            DOCTEST_CHECK(
                (c.found() - c.expected_of_rounded()).abs().max().item<double>() < 1e-5 * k);
            DOCTEST_CHECK((c.found() - c.expected()).abs().max().item<double>() > 1e-3);
          }
  }
  const nn::RoundedProducts off(false);
  const ProductCase c{64, 64, 64, false, false, 1, 0};
  DOCTEST_CHECK((c.found() - c.expected()).abs().max().item<double>() < 1e-3);
}

DOCTEST_TEST_CASE("what is no number stays none in rounded products") {
  const nn::RoundedProducts rounded(true);
  auto x = torch::ones({64, 64}), y = torch::ones({64, 64});
  x[5][7] = std::numeric_limits<float>::quiet_NaN();
  x[7][9] = 1e-42f;
  for (const std::int64_t terms : {64, 33}) {  // the last one has no second
    x[6][terms - 1] = std::numeric_limits<float>::infinity();
    const auto z = x.narrow(1, 0, terms).contiguous().mm(y.narrow(0, 0, terms));
    DOCTEST_CHECK(std::isnan(z[5][0].item<float>()));
    DOCTEST_CHECK(std::isinf(z[6][0].item<float>()));
    DOCTEST_CHECK(z[7][0].item<float>() == doctest::Approx(static_cast<float>(terms - 1)));
    DOCTEST_CHECK(z[4][0].item<float>() == static_cast<float>(terms));
  }
}

DOCTEST_TEST_CASE("threads share a product without changing a bit of it") {
  const Taken taken(true);
  for (const auto& [m, n] : std::vector<std::array<int, 2>>{{1031, 130}, {130, 1031}}) {
    const ProductCase c{m, n, 300, false, true, 1, 0};
    const auto of = [&c, columns = n](int threads) {
      const Threads set(threads);
      return c.found().narrow(1, 0, columns).contiguous();
    };
    DOCTEST_CHECK(torch::equal(of(1), of(3)));
  }
}

DOCTEST_TEST_CASE("torch's products and layers are the process's") {
  const auto x = torch::randn({96, 160}), w = torch::randn({224, 160}), b = torch::randn({224});
  const auto ours = [&] {
    const Taken taken(true);
    return torch::linear(x, w, b);
  }();
  const auto theirs = [&] {
    const Taken taken(false);
    return torch::linear(x, w, b);
  }();
  DOCTEST_CHECK(torch::allclose(ours, theirs, 1e-5, 1e-4));
  // The same call of the kernel, bit for bit.
  Tensor c = b.expand({96, 224}).contiguous();
  nn::multiply({96, 224, 160, 1, {x.data_ptr<float>(), 160, 1}, {w.data_ptr<float>(), 1, 160}, true,
      c.data_ptr<float>(), 224});
  DOCTEST_CHECK(torch::equal(ours, c));
}

DOCTEST_TEST_CASE("what is not a number stays none") {
  const Taken taken(true);
  auto x = torch::ones({64, 64});
  x[5][7] = std::numeric_limits<float>::infinity();
  const auto y = x.mm(torch::zeros({64, 64}));
  DOCTEST_CHECK(std::isnan(y[5][0].item<float>()));
  DOCTEST_CHECK(y[4][0].item<float>() == 0);
}
