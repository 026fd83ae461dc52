#include "ranks/group.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/rng.h"
#include "unit/ranks/processes.h"

namespace {

constexpr std::int64_t kLeaves = 8;
constexpr int kUsage = static_cast<int>(core::Code::usage),
              kLost = static_cast<int>(core::Code::rank_lost);

template <class T> std::vector<T> leaf(std::int64_t number, std::int64_t n) {
  core::Rng rng(7, static_cast<std::uint64_t>(number));
  std::vector<T> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<T>((rng.uniform() - 0.5) * std::exp2(rng.uniform() * 20)));
  return values;
}

// By definition: the sum of leaves [begin, end) is the sum of its halves.
template <class T> std::vector<T> tree(std::int64_t begin, std::int64_t end, std::int64_t n) {
  if (end - begin == 1) return leaf<T>(begin, n);
  const auto middle = (begin + end) / 2;
  auto low = tree<T>(begin, middle, n);
  const auto high = tree<T>(middle, end, n);
  for (std::size_t i = 0; i < low.size(); ++i) low[i] += high[i];
  return low;
}

template <class T> std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T> torch::Tensor tensor_of(std::vector<T> values) {
  return torch::from_blob(
      values.data(), {std::ssize(values)}, torch::dtype(torch::CppTypeToScalarType<T>::value))
      .clone();
}

std::string bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

template <class T> RankBody sums(std::int64_t n, ranks::Sum how) {
  return [=](ranks::Group& group) {
    const std::int64_t each = kLeaves / group.size(), first = group.rank() * each;
    auto own = tensor_of(tree<T>(first, first + each, n));
    group.sum(own, how);
    return bytes_of(own);
  };
}

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return ntohs(address.sin_port);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

DOCTEST_TEST_CASE("a sum over 1, 2, 4 and 8 ranks has the bytes of a plain tree") {
  for (const std::int64_t n : {1, 3, 7, 64, 1001}) {
    const auto whole = bytes_of(tree<float>(0, kLeaves, n));
    for (const int size : {1, 2, 4, 8})
      for (const auto& rank : run_ranks(size, sums<float>(n, ranks::Sum::tree)))
        DOCTEST_CHECK(rank.text == whole);
  }
  const auto whole = bytes_of(tree<double>(0, kLeaves, 5));
  for (const auto& rank : run_ranks(4, sums<double>(5, ranks::Sum::tree)))
    DOCTEST_CHECK(rank.text == whole);
}

DOCTEST_TEST_CASE("a sum of millions goes through, and a second with the same buffers too") {
  constexpr std::int64_t kMany = 3'000'001;
  const auto body = [](ranks::Group& group) {
    auto own = torch::full({kMany}, static_cast<double>(group.rank() + 1), torch::kFloat32);
    group.sum(own);
    auto less = torch::full({5, 3}, 0.5F);
    group.sum(less);
    const bool right = own.eq(3).all().item<bool>() && less.eq(1).all().item<bool>();
    return std::string(right ? "right" : "wrong");
  };
  for (const auto& rank : run_ranks(2, body)) DOCTEST_CHECK(rank.text == "right");
}

DOCTEST_TEST_CASE("the fast sum, and that of three ranks, is near, and the same on all ranks") {
  for (const auto& [size, how] :
      {std::pair{2, ranks::Sum::fast}, {4, ranks::Sum::fast}, {3, ranks::Sum::tree}}) {
    const auto body = [how = how](ranks::Group& group) {
      auto own = tensor_of(leaf<double>(group.rank(), 100));
      group.sum(own, how);
      return bytes_of(own);
    };
    std::vector<double> whole(100, 0.0);
    for (int rank = 0; rank < size; ++rank) {
      const auto values = leaf<double>(rank, 100);
      for (std::size_t i = 0; i < 100; ++i) whole[i] += values[i];
    }
    const auto all = run_ranks(size, body);
    std::vector<double> summed(100);
    DOCTEST_REQUIRE(all[0].text.size() == sizeof(double) * summed.size());
    std::memcpy(summed.data(), all[0].text.data(), all[0].text.size());
    for (std::size_t i = 0; i < 100; ++i)
      DOCTEST_CHECK(summed[i] == doctest::Approx(whole[i]).epsilon(1e-12));
    for (const auto& rank : all) DOCTEST_CHECK(rank.text == all[0].text);
  }
}

DOCTEST_TEST_CASE("ranks gather tensors of any dtype and texts of any length, in their order") {
  const auto body = [](ranks::Group& group) {
    const auto r = group.rank();
    std::string text;
    for (const auto& tensor : group.gather(torch::tensor({r, 10 * r}, torch::kInt64)))
      text += std::to_string(tensor[1].item<std::int64_t>()) + " ";
    for (const auto& tensor : group.gather(torch::full({1, 1}, r == 1, torch::kBool)))
      text += tensor.item<bool>() ? "yes " : "no ";
    for (const auto& other : group.gather(std::string(static_cast<std::size_t>(r), 'x')))
      text += "<" + other + ">";
    text += std::to_string(group.gather(torch::empty({0, 3})).size());
    text += " " + std::to_string(group.from_first(40 + r));
    text += " " + std::to_string(group.any(r == 2 ? 5 : 4)) + " " + std::to_string(group.any(0));
    return text;
  };
  for (const auto& rank : run_ranks(3, body))
    DOCTEST_CHECK(rank.text == "0 10 20 no yes no <><x><xx>3 40 5 0");
}

DOCTEST_TEST_CASE("ranks meet by TCP, and on one machine without a port") {
  core::Launch launch;
  launch.host = "127.0.0.1";
  launch.port = free_port();
  launch.name = ".3";
  for (const bool one_machine : {false, true}) {
    launch.one_machine = one_machine;
    for (const auto& rank : run_ranks(2, sums<float>(9, ranks::Sum::tree), launch)) {
      DOCTEST_CHECK(rank.code == 0);
      DOCTEST_CHECK(rank.text == bytes_of(tree<float>(0, kLeaves, 9)));
    }
  }
}

DOCTEST_TEST_CASE("the file by which they met is gone once they have") {
  const auto body = [](ranks::Group& group) {
    group.any(0);  // after rank 0, which removes it
    return std::string(std::filesystem::is_empty("run") ? "gone" : "there");
  };
  for (const auto& rank : run_ranks(2, body)) DOCTEST_CHECK(rank.text == "gone");
}

DOCTEST_TEST_CASE("rank 0 works longer than the timeout, and all get what it found") {
  const auto body = [](ranks::Group& group) {
    const auto value = group.first_does([] {
      std::this_thread::sleep_for(std::chrono::seconds(8));
      return std::int64_t{42};
    });
    return std::to_string(value + group.first_does([] { return std::int64_t{1}; }));
  };
  for (const auto& rank : run_ranks(3, body, {}, std::chrono::seconds(5)))
    DOCTEST_CHECK(rank.text == "43");
}

DOCTEST_TEST_CASE(
    "ranks that are done wait for one that works longer than the timeout, not for one that died") {
  const auto body = [](ranks::Group& group) {
    group.together([&] {
      if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(8));
    });
    return std::to_string(group.from_first(7));
  };
  for (const auto& rank : run_ranks(3, body, {}, std::chrono::seconds(5)))
    DOCTEST_CHECK(rank.text == "7");
  const auto dies = [](ranks::Group& group) {
    group.together([&] {
      if (group.rank() == 1) ::_exit(9);
    });
    return std::string("went on");
  };
  const auto all = run_ranks(3, dies, {}, std::chrono::seconds(5));
  DOCTEST_CHECK(all[0].code == kLost);
  DOCTEST_CHECK(all[2].code == kLost);
}

DOCTEST_TEST_CASE("where one rank fails all leave with its code") {
  const auto first = [](ranks::Group& group) {
    group.first_does([]() -> std::int64_t { core::fail(core::Code::cannot_create, "no place"); });
    return std::string();
  };
  auto all = run_ranks(2, first);
  DOCTEST_CHECK(all[0].code == 73);
  DOCTEST_CHECK(all[0].text == "no place");
  DOCTEST_CHECK(all[1].code == 73);
  DOCTEST_CHECK(all[1].text == "rank 1 of 2: rank 0 failed; see its message");
  const auto any = [](ranks::Group& group) {
    group.together([&] {
      if (group.rank() == 1) core::fail(core::Code::no_input, "not there");
    });
    return std::string();
  };
  all = run_ranks(3, any);
  for (const auto& rank : all) DOCTEST_CHECK(rank.code == 66);
  DOCTEST_CHECK(all[1].text == "not there");
  DOCTEST_CHECK(all[2].text == "rank 2 of 3: rank 1 failed; see its message");
}

DOCTEST_TEST_CASE("a rank that dies is noticed at once, one that is silent after the timeout") {
  const auto dies = [](ranks::Group& group) {
    group.any(0);
    if (group.rank() == 1) ::_exit(9);
    auto own = torch::ones({1000});
    group.sum(own);
    return std::string("went on");
  };
  const auto start = std::chrono::steady_clock::now();
  auto all = run_ranks(4, dies, {}, std::chrono::seconds(300));
  for (const std::size_t rank : {0, 2, 3}) {
    DOCTEST_CHECK(all[rank].code == kLost);
    DOCTEST_CHECK(all[rank].text.find("another rank was lost") != std::string::npos);
    DOCTEST_CHECK(all[rank].text.find('\n') == std::string::npos);
  }
  DOCTEST_CHECK(seconds_since(start) < 100);

  const auto sleeps = [](ranks::Group& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(12));
    group.any(0);
    return std::string("went on");
  };
  all = run_ranks(2, sleeps, {}, std::chrono::seconds(5));
  for (const auto& rank : all) DOCTEST_CHECK(rank.code == kLost);
  const auto in_turn = [](ranks::Group& group) {
    if (group.rank() == 0) ::_exit(9);
    group.first_does([] { return std::int64_t{1}; });
    return std::string("went on");
  };
  DOCTEST_CHECK(run_ranks(2, in_turn)[1].code == kLost);
}

DOCTEST_TEST_CASE("a rank does not die of writing to one that is gone") {
  const auto body = [](ranks::Group&) {
    int ends[2];
    DOCTEST_REQUIRE(::pipe(ends) == 0);
    ::close(ends[0]);
    return std::string(::write(ends[1], "x", 1) < 0 && errno == EPIPE ? "told" : "not told");
  };
  for (const auto& rank : run_ranks(2, body)) DOCTEST_CHECK(rank.text == "told");
}

DOCTEST_TEST_CASE("a rank that never comes is an error after the timeout, not a wait for ever") {
  core::Launch launch;
  launch.host = "127.0.0.1";
  launch.port = free_port();
  const auto start = std::chrono::steady_clock::now();
  const auto lonely = run_ranks(
      1,
      [&](ranks::Group&) {
        core::Launch half = launch;
        half.size = 2;
        ranks::Group::join(half, ".", std::chrono::milliseconds(1500));
        return std::string("met");
      },
      launch);
  DOCTEST_CHECK(lonely[0].code == kLost);
  DOCTEST_CHECK(
      lonely[0].text.find("could not join the other ranks at 127.0.0.1") != std::string::npos);
  DOCTEST_CHECK(seconds_since(start) < 60);
}

DOCTEST_TEST_CASE("ranks that were told different things say which, and who") {
  const auto body = [](ranks::Group& group) {
    core::OrderedJson own{{"steps", 10}, {"lr", 0.001}};
    if (group.rank() == 2) own["lr"] = 0.002;
    ranks::expect_agreement(group, own);
    return std::string();
  };
  for (const auto& rank : run_ranks(3, body)) {
    DOCTEST_CHECK(rank.code == kUsage);
    DOCTEST_CHECK(rank.text == "lr: rank 0 has 0.001, rank 2 has 0.002; give all ranks the same");
  }
  const auto digests = [](ranks::Group& group) {
    ranks::expect_same_digest(group, "weights", "same");
    ranks::expect_same_digest(group, "weights", group.rank() == 1 ? "a" : "b");
    return std::string();
  };
  for (const auto& rank : run_ranks(2, digests)) {
    DOCTEST_CHECK(rank.code == 70);
    DOCTEST_CHECK(rank.text.find("weights of rank 1") != std::string::npos);
  }
}
