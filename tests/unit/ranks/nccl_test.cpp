// NCCL's transport over a library with its interface that computes on the CPU (tests/nccl).

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/rng.h"
#include "ranks/transport.h"
#include "unit/ranks/nccl_stub.h"
#include "unit/ranks/processes.h"

namespace {

constexpr int kRankLost = static_cast<int>(core::Code::rank_lost),
              kUnavailable = static_cast<int>(core::Code::unavailable);

// A body for ranks that are connected by NCCL for the CPU.
RankBody connected(RankBody body) {
  return [body = std::move(body)](ranks::Group& group) {
    group.connect("nccl", torch::kCPU);
    return body(group);
  };
}

std::vector<float> numbers_of(std::int64_t rank, std::int64_t n) {
  core::Rng rng(5, static_cast<std::uint64_t>(rank));
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>((rng.uniform() - 0.5) * std::exp2(rng.uniform() * 20)));
  return values;
}

torch::Tensor vector_of(std::vector<float> values) {
  return torch::from_blob(values.data(), {std::ssize(values)}).clone();
}

std::string contents_of(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Plainly: the sum of ranks [begin, end) is that of their halves.
std::vector<float> halves(std::int64_t begin, std::int64_t end, std::int64_t n) {
  if (end - begin == 1) return numbers_of(begin, n);
  const auto middle = (begin + end) / 2;
  auto low = halves(begin, middle, n);
  const auto high = halves(middle, end, n);
  for (std::size_t i = 0; i < low.size(); ++i) low[i] += high[i];
  return low;
}

}  // namespace

DOCTEST_TEST_CASE("NCCL's sum by a tree over 2, 4 and 8 ranks has the bytes of a plain tree") {
  if (!use_nccl_stub()) return;
  for (const std::int64_t n : {1, 7, 1001, 100'003}) {
    for (const int size : {2, 4, 8}) {
      const auto whole = contents_of(vector_of(halves(0, size, n)));
      const auto body = connected([n](ranks::Group& group) {
        auto own = vector_of(numbers_of(group.rank(), n));
        group.sum(own, ranks::Sum::tree);
        return contents_of(own);
      });
      for (const auto& rank : run_ranks(size, body)) {
        DOCTEST_CHECK(rank.code == 0);
        DOCTEST_CHECK((rank.text == whole));
      }
    }
  }
}

DOCTEST_TEST_CASE("NCCL's own sum, and a tree over 3 ranks: near, and the same on all ranks") {
  if (!use_nccl_stub()) return;
  for (const auto& [size, how] :
      {std::pair{2, ranks::Sum::fast}, {4, ranks::Sum::fast}, {3, ranks::Sum::tree}}) {
    const auto body = connected([how = how](ranks::Group& group) {
      auto own = torch::arange(1, 101, torch::kFloat64) * static_cast<double>(group.rank() + 1);
      group.sum(own, how);
      return contents_of(own);
    });
    const auto all = run_ranks(size, body);
    const auto whole = torch::arange(1, 101, torch::kFloat64) * (size * (size + 1) / 2.0);
    for (const auto& rank : all) DOCTEST_CHECK((rank.text == contents_of(whole)));
  }
}

DOCTEST_TEST_CASE("ranks gather and exchange by NCCL, and agree over Gloo beside it") {
  if (!use_nccl_stub()) return;
  const auto body = connected([](ranks::Group& group) {
    const auto r = group.rank();
    std::string text = group.connects(torch::kCPU) ? "connected " : "not connected ";
    for (const auto& tensor : group.gather(torch::tensor({r, 10 * r}, torch::kInt64)))
      text += std::to_string(tensor[1].item<std::int64_t>()) + " ";
    for (const auto& other : group.gather(std::string(static_cast<std::size_t>(r), 'x')))
      text += "<" + other + ">";
    std::vector<torch::Tensor> out, in;
    for (std::int64_t other = 0; other < group.size(); ++other) {
      out.push_back(torch::full({other + 1}, static_cast<float>(10 * r + other)));
      in.push_back(torch::empty({other == r ? 0 : r + 1}));
    }
    group.exchange(0, out, in);
    bool right = true;
    for (std::int64_t other = 0; other < group.size(); ++other)
      right = right && in[static_cast<std::size_t>(other)]
                           .eq(static_cast<float>(10 * other + r))
                           .all()
                           .item<bool>();
    return text + (right ? " right " : " wrong ") + std::to_string(group.any(r == 2 ? 5 : 4)) +
           " " + std::to_string(group.from_first(40 + r));
  });
  for (const auto& rank : run_ranks(3, body))
    DOCTEST_CHECK(rank.text == "connected 0 10 20 <><x><xx> right 5 40");
}

DOCTEST_TEST_CASE(
    "slices of any lengths are added for their ranks, by a tree and in NCCL's order") {
  if (!use_nccl_stub()) return;
  // Nearly equal slices; such that one rank has nearly all; an empty one.
  const std::vector<std::vector<std::int64_t>> cases = {
      {1000, 1003}, {7, 90'000}, {0, 5}, {500, 499, 0, 501}, {1, 2, 3, 40'000}, {10, 11, 12}};
  for (const auto& lengths : cases) {
    const auto size = static_cast<int>(lengths.size());
    std::vector<std::string> sums;  // plainly, of each rank
    const auto all = halves(0, size, 100'000);
    for (std::int64_t rank = 0, at = 0; rank < size;
         at += lengths[static_cast<std::size_t>(rank++)])
      sums.push_back(
          contents_of(vector_of(all).narrow(0, at, lengths[static_cast<std::size_t>(rank)])));
    for (const bool nccl : {false, true}) {
      const auto body = [&](ranks::Group& group) {
        if (nccl) group.connect("nccl", torch::kCPU);
        const auto own = vector_of(numbers_of(group.rank(), 100'000));
        std::vector<torch::Tensor> slices, whole;
        std::int64_t at = 0;
        for (const auto length : lengths) {
          slices.push_back(own.narrow(0, at, length).clone());
          whole.push_back(
              torch::arange(length, torch::kFloat64) + static_cast<double>(group.rank()));
          at += length;
        }
        const auto me = static_cast<std::size_t>(group.rank());
        const auto fast = group.reduce_scatter(whole, ranks::Sum::fast);
        const auto n = static_cast<double>(group.size());
        if (!torch::equal(fast, torch::arange(lengths[me], torch::kFloat64) * n + n * (n - 1) / 2))
          return std::string("in the library's order");
        return contents_of(group.reduce_scatter(std::move(slices), ranks::Sum::tree));
      };
      const auto ended = run_ranks(size, body);
      DOCTEST_CAPTURE(size);
      DOCTEST_CAPTURE(nccl);
      for (std::size_t rank = 0; rank < ended.size(); ++rank) {
        DOCTEST_CHECK(ended[rank].code == 0);
        // The plain tree is another one for three ranks.
        DOCTEST_CHECK(ended[rank].text.size() == sums[rank].size());
        DOCTEST_CHECK((size == 3 || ended[rank].text == sums[rank]));
      }
    }
  }
}

DOCTEST_TEST_CASE("ranks gather tensors of different lengths, by NCCL and by Gloo") {
  if (!use_nccl_stub()) return;
  for (const auto& lengths : std::vector<std::vector<std::int64_t>>{
           {3, 5}, {0, 70'000}, {1000, 1001, 999}, {0, 0, 4}, {0, 0}}) {
    for (const bool nccl : {false, true}) {
      const auto body = [&](ranks::Group& group) {
        if (nccl) group.connect("nccl", torch::kCPU);
        const auto of = [&](std::size_t rank) {
          return torch::arange(lengths[rank], torch::kFloat32) + 1000 * static_cast<float>(rank);
        };
        const auto all = group.gather(of(static_cast<std::size_t>(group.rank())), lengths);
        for (std::size_t rank = 0; rank < lengths.size(); ++rank)
          if (!torch::equal(all[rank], of(rank))) return "rank " + std::to_string(rank);
        return std::string("right");
      };
      for (const auto& rank : run_ranks(static_cast<int>(lengths.size()), body))
        DOCTEST_CHECK(rank.text == "right");
    }
  }
}

DOCTEST_TEST_CASE("where a rank is killed the others end with 76 and one line, though NCCL waits") {
  if (!use_nccl_stub()) return;
  for (const auto& [size, how] : {std::pair{2, ranks::Sum::fast}, {4, ranks::Sum::tree}}) {
    const auto body = connected([how = how](ranks::Group& group) {
      auto own = torch::ones({1000});
      group.sum(own, how);
      if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
      group.sum(own, how);
      return std::string("went on");
    });
    const auto all = run_ranks(size, body, {}, std::chrono::seconds(300));
    for (int rank = 0; rank < size; ++rank) {
      if (rank == 1) continue;
      const auto& ended = all[static_cast<std::size_t>(rank)];
      DOCTEST_CHECK(ended.code == kRankLost);
      DOCTEST_CHECK(ended.text.find("another rank was lost") != std::string::npos);
      DOCTEST_CHECK(ended.text.find('\n') == std::string::npos);
    }
  }
}

DOCTEST_TEST_CASE("a rank that fails alone ends the others, one that is silent after the timeout") {
  if (!use_nccl_stub()) return;
  const auto fails = connected([](ranks::Group& group) {
    if (group.rank() == 0) core::fail(core::Code::out_of_memory, "too large");
    auto own = torch::ones({10});
    group.sum(own);
    return std::string("went on");
  });
  auto all = run_ranks(2, fails, {}, std::chrono::seconds(300));
  DOCTEST_CHECK(all[0].text == "too large");
  DOCTEST_CHECK(all[1].code == kRankLost);
  const auto sleeps = connected([](ranks::Group& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(10));
    auto own = torch::ones({10});
    group.sum(own);
    return std::string("went on");
  });
  all = run_ranks(2, sleeps, {}, std::chrono::seconds(5));
  DOCTEST_CHECK(all[0].code == kRankLost);
  DOCTEST_CHECK(all[0].text.find("longer than --rank-timeout") != std::string::npos);
  DOCTEST_CHECK(all[1].code == kRankLost);
}

DOCTEST_TEST_CASE("a missing NCCL is one line and 69 on all ranks") {
  if (!use_nccl_stub()) return;
  const auto body = [](ranks::Group& group) {
    if (group.rank() == 1) ::setenv("TESSERA_NCCL", "/nowhere/libnccl.so", 1);
    group.connect("nccl", torch::kCPU);
    return std::string("connected");
  };
  const auto all = run_ranks(2, body);
  DOCTEST_CHECK(all[1].code == kUnavailable);
  DOCTEST_CHECK(all[1].text.find("NCCL cannot be loaded (/nowhere/libnccl.so") == 0);
  DOCTEST_CHECK(all[0].code == kUnavailable);
  DOCTEST_CHECK(all[0].text == "rank 0 of 2: rank 1 failed; see its message");
}
