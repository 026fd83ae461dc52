// Products of queries and entries in tiles, compared with float64.
#include "nn/ops/entry_products.h"

#include <doctest/doctest.h>

#include "properties.h"

namespace {

using properties::gap;
using torch::Tensor;

struct Products {
  Tensor scores, d_queries, d_keys;
};

// Results are added to previous contents.
Products products_of(const Tensor& queries, const Tensor& keys, const Tensor& d) {
  Products p{nn::entry_products(queries, keys), queries.clone(), keys.clone()};
  nn::add_query_gradient(d, keys, p.d_queries);
  nn::add_entry_gradient(d, queries, p.d_keys);
  return p;
}

}  // namespace

DOCTEST_TEST_CASE("products of queries and entries, and their gradients, are those of float64") {
  torch::manual_seed(1);
  for (const std::int64_t width : {5, 16, 48, 256})
    for (const std::int64_t queries : {1, 5, 131})
      for (const std::int64_t entries : {1, 63, 64, 65, 300, 700}) {
        // As parts of larger tensors, as in the loss.
        const Tensor q = torch::randn({queries + 3, width}).slice(0, 2, queries + 2),
                     k = torch::randn({entries + 3, width}).slice(0, 1, entries + 1),
                     d = torch::randn({queries, entries});
        const auto got = products_of(q, k, d);
        const Tensor wide_q = q.to(torch::kFloat64), wide_k = k.to(torch::kFloat64),
                     wide_d = d.to(torch::kFloat64);
        DOCTEST_CAPTURE(width);
        DOCTEST_CAPTURE(queries);
        DOCTEST_CAPTURE(entries);
        DOCTEST_CHECK(gap(got.scores.to(torch::kFloat64), wide_q.mm(wide_k.t())) < 1e-4);
        DOCTEST_CHECK(gap(got.d_queries.to(torch::kFloat64), wide_q + wide_d.mm(wide_k)) < 1e-4);
        DOCTEST_CHECK(gap(got.d_keys.to(torch::kFloat64), wide_k + wide_d.t().mm(wide_q)) < 1e-4);
      }
}

DOCTEST_TEST_CASE("products of queries and entries are the same bits with any number of threads") {
  torch::manual_seed(2);
  const Tensor q = torch::randn({77, 48}), k = torch::randn({500, 48}), d = torch::randn({77, 500});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = products_of(q, k, d);
  at::set_num_threads(3);
  const auto three = products_of(q, k, d);
  at::set_num_threads(threads);
  DOCTEST_CHECK(torch::equal(alone.scores, three.scores));
  DOCTEST_CHECK(torch::equal(alone.d_queries, three.d_queries));
  DOCTEST_CHECK(torch::equal(alone.d_keys, three.d_keys));
}
