#include "train/gradient_sum.h"

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

#include "core/rng.h"
#include "nn/ops/gathered_sum.h"
#include "unit/ranks/processes.h"

namespace {

constexpr std::int64_t kNumbers = 37;

std::vector<float> gradient_of(std::int64_t leaf) {
  core::Rng rng(3, static_cast<std::uint64_t>(leaf));
  std::vector<float> values;
  for (std::int64_t i = 0; i < kNumbers; ++i)
    values.push_back(static_cast<float>((rng.uniform() - 0.5) * std::exp2(rng.uniform() * 20)));
  return values;
}

double nats_of(std::int64_t leaf) { return 1.1 * static_cast<double>(leaf) + 0.3; }

// One plain sum of all: leaves of a block in sequence, blocks by halves.
template <class T, class F>
T plain(std::int64_t begin, std::int64_t end, std::int64_t block, const F& leaf) {
  const auto add = [](T& a, const T& b) {
    if constexpr (std::is_same_v<T, double>) {
      a += b;
    } else {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    }
  };
  T all = leaf(begin);
  if (end - begin <= block) {
    for (auto i = begin + 1; i < end; ++i) add(all, leaf(i));
    return all;
  }
  const auto middle = (begin + end) / 2;
  all = plain<T>(begin, middle, block, leaf);
  add(all, plain<T>(middle, end, block, leaf));
  return all;
}

// Returns the sum of `leaves` in this process's share. A second weight has a gradient only in leaf
// 1.
std::string summed(ranks::Group& group, std::int64_t leaves, ranks::Sum how) {
  const train::NamedWeights weights = {{"a", torch::zeros({kNumbers}).requires_grad_()},
      {"b", torch::zeros({2, 2}).requires_grad_()}};
  const std::int64_t own = leaves / group.size(), first = group.rank() * own;
  train::GradientSum sum(weights, own, group, how);
  for (std::int64_t leaf = first; leaf < first + own; ++leaf) {
    auto values = gradient_of(leaf);
    auto loss = (weights[0].second * torch::from_blob(values.data(), {kNumbers}).clone()).sum();
    if (leaf == 1) loss = loss + weights[1].second.sum();
    loss.backward();
    sum.add(torch::full({}, nats_of(leaf), torch::kFloat64), 10 + leaf);
  }
  train::Update update;
  sum.finish(update);
  const auto a = weights[0].second.grad(), b = weights[1].second.grad();
  std::string out(static_cast<const char*>(a.const_data_ptr()), a.nbytes());
  const double loss = update.loss.item<double>();
  out.append(reinterpret_cast<const char*>(&loss), sizeof(loss));
  const bool right = update.scored == 10 * leaves + leaves * (leaves - 1) / 2 &&
                     (b.defined() ? b.sum().item<double>() : 0) == (leaves > 1 ? 4 : 0);
  return out + (right ? "right" : "wrong");
}

std::string plainly(std::int64_t leaves, std::int64_t block) {
  const auto a = plain<std::vector<float>>(0, leaves, block, gradient_of);
  const double loss = plain<double>(0, leaves, block, nats_of);
  std::string out(reinterpret_cast<const char*>(a.data()), a.size() * sizeof(float));
  out.append(reinterpret_cast<const char*>(&loss), sizeof(loss));
  return out + "right";
}

}  // namespace

DOCTEST_TEST_CASE("gradients and losses are added by a plain tree over blocks of the odd factor") {
  const auto alone = ranks::Group::alone();
  for (const auto& [leaves, block] :
      {std::pair{1, 1}, {2, 1}, {3, 3}, {4, 1}, {6, 3}, {7, 7}, {8, 1}, {12, 3}, {20, 5}}) {
    DOCTEST_CAPTURE(leaves);
    DOCTEST_CHECK((summed(*alone, leaves, ranks::Sum::tree) == plainly(leaves, block)));
    DOCTEST_CHECK((summed(*alone, leaves, ranks::Sum::fast) == plainly(leaves, leaves)));
    for (int size = 2; leaves % size == 0 && size <= 4; size *= 2)
      for (const auto& rank : run_ranks(size, [&, leaves = leaves](ranks::Group& group) {
             return summed(group, leaves, ranks::Sum::tree);
           }))
        DOCTEST_CHECK((rank.text == plainly(leaves, block)));
  }
}

namespace {

constexpr std::int64_t kRows = 30, kWidth = 5;

// A table's gradients of `leaves` micro-batches, each of which reads other rows, some twice; as
// `sparse` tensors or dense ones, summed and dense.
std::string table_summed(ranks::Group& group, std::int64_t leaves, ranks::Sum how, bool sparse) {
  const train::NamedWeights weights = {
      {"h.0.ngram.tables", torch::zeros({kRows, kWidth}).requires_grad_()},
      {"b", torch::zeros({3}).requires_grad_()}};
  const std::int64_t own = leaves / group.size(), first = group.rank() * own;
  train::GradientSum sum(weights, own, group, how);
  for (std::int64_t leaf = first; leaf < first + own; ++leaf) {
    core::Rng rng(5, static_cast<std::uint64_t>(leaf));
    const std::int64_t count = leaf % 4;  // none, too
    auto rows = torch::empty({count}, torch::kInt64);
    for (std::int64_t i = 0; i < count; ++i) rows[i] = static_cast<std::int64_t>(rng.below(kRows));
    rows = std::get<0>(at::_unique(rows));
    const auto values = torch::empty({rows.size(0), kWidth});
    for (std::int64_t i = 0; i < values.numel(); ++i)
      values.data_ptr<float>()[i] = static_cast<float>((rng.uniform() - 0.5) * std::exp2(leaf));
    const auto gradient = nn::row_gradient(rows, values, {kRows, kWidth});
    auto& into = torch::Tensor(weights[0].second).mutable_grad();
    const auto added = sparse ? gradient : gradient.to_dense();
    if (count > 0) into = into.defined() ? into + added : added;
    (weights[1].second * static_cast<double>(leaf)).sum().backward();
    sum.add(torch::zeros({}, torch::kFloat64), 1);
  }
  train::Update update;
  sum.finish(update);
  const auto& got = weights[0].second.grad();
  if (sparse && !got.is_sparse()) return "dense";
  const auto all = got.is_sparse() ? got.to_dense() : got;
  return {static_cast<const char*>(all.const_data_ptr()), all.nbytes()};
}

}  // namespace

DOCTEST_TEST_CASE("sparse gradients are added to the bits of dense ones, by any number of ranks") {
  const auto alone = ranks::Group::alone();
  for (const std::int64_t leaves : {4, 6, 7, 8, 12}) {
    DOCTEST_CAPTURE(leaves);
    const auto dense = table_summed(*alone, leaves, ranks::Sum::tree, false);
    DOCTEST_CHECK((table_summed(*alone, leaves, ranks::Sum::tree, true) == dense));
    for (int size = 2; leaves % size == 0 && size <= 4; size *= 2)
      for (const auto& rank : run_ranks(size, [&, leaves = leaves](ranks::Group& group) {
             return table_summed(group, leaves, ranks::Sum::tree, true);
           }))
        DOCTEST_CHECK((rank.text == dense));
  }
}

DOCTEST_TEST_CASE("how many gradients a sum holds") {
  using train::GradientSum;
  DOCTEST_CHECK(GradientSum::held(1, ranks::Sum::tree) == 1);
  DOCTEST_CHECK(GradientSum::held(9, ranks::Sum::tree) == 1);
  DOCTEST_CHECK(GradientSum::held(2, ranks::Sum::tree) == 2);
  DOCTEST_CHECK(GradientSum::held(12, ranks::Sum::tree) == 3);
  DOCTEST_CHECK(GradientSum::held(64, ranks::Sum::tree) == 7);
  DOCTEST_CHECK(GradientSum::held(64, ranks::Sum::fast) == 1);
}
