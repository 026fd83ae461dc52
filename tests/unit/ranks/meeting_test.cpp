#include "ranks/meeting.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ranks/proof.h"

namespace {

using std::chrono::seconds;

std::string in_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return text;
}

// Opens a socket on the loopback that listens, or that has connected to `port`.
int loopback_socket(std::uint16_t& port, bool listens) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (!listens) {
    const timeval most = {1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (::connect(fd, name, length) == 0) return fd;
    ::close(fd);
    return -1;
  }
  DOCTEST_REQUIRE(::bind(fd, name, length) == 0);
  DOCTEST_REQUIRE(::listen(fd, 9) == 0);
  ::getsockname(fd, name, &length);
  port = ntohs(address.sin_port);
  return fd;
}

core::Launch launch_of(std::int64_t rank, bool one_machine) {
  static std::uint16_t port = 0;
  if (port == 0) ::close(loopback_socket(port, true));
  core::Launch launch;
  launch.host = "127.0.0.1";
  launch.port = port;
  launch.name = ".0";
  launch.rank = rank;
  launch.size = 2;
  launch.one_machine = one_machine;
  return launch;
}

// Returns what rank 1 gets from a meeting that rank 0 holds.
std::string rank_one(core::Launch launch, seconds timeout = seconds(20)) {
  try {
    ranks::Meeting meeting(launch, timeout);
    meeting.set("one", "from 1");
    return meeting.get("zero", timeout);
  } catch (const std::exception& error) { return error.what(); }
}

}  // namespace

DOCTEST_TEST_CASE("a proof is HMAC-SHA-256: the cases of RFC 4231") {
  DOCTEST_CHECK(in_hex(ranks::proof(std::string(20, '\x0b'), "Hi There")) ==
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  DOCTEST_CHECK(in_hex(ranks::proof("Jefe", "what do ya want for nothing?")) ==
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  DOCTEST_CHECK(in_hex(ranks::proof(std::string(131, '\xaa'),
                    "Test Using Larger Than Block-Size Key - Hash Key First")) ==
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  DOCTEST_CHECK(ranks::equal_proofs("ab", "ab"));
  DOCTEST_CHECK(!ranks::equal_proofs("ab", "ac"));
  DOCTEST_CHECK(!ranks::equal_proofs("ab", "abc"));
}

DOCTEST_TEST_CASE("ranks meet on one machine without a port, and on several by one") {
  for (const bool one_machine : {true, false}) {
    const auto before = ranks::listeners().size();
    ranks::Meeting first(launch_of(0, one_machine), seconds(20));
    DOCTEST_CHECK(ranks::listeners().size() == before + (one_machine ? 0 : 1));
    DOCTEST_CHECK_THROWS_AS(ranks::Meeting(launch_of(0, one_machine), seconds(1)), core::Error);
    first.set("zero", "from 0");
    DOCTEST_CHECK(rank_one(launch_of(1, one_machine)) == "from 0");
    DOCTEST_CHECK(first.get("one", seconds(20)) == "from 1");
    DOCTEST_CHECK_THROWS(first.get("two", std::chrono::milliseconds(10)));
    first.close();
    DOCTEST_CHECK(ranks::listeners().size() == before);
    DOCTEST_CHECK_THROWS(first.get("one", seconds(1)));
  }
}

DOCTEST_TEST_CASE("a rank may come before rank 0, and waits for a value that is not there yet") {
  auto other = std::async(std::launch::async, [] { return rank_one(launch_of(1, true)); });
  ranks::Meeting first(launch_of(0, true), seconds(20));
  DOCTEST_CHECK(first.get("one", seconds(20)) == "from 1");
  first.set("zero", "late");
  DOCTEST_CHECK(other.get() == "late");
}

DOCTEST_TEST_CASE("another key, size or name, or a rank that is there already, does not get in") {
  auto with_key = launch_of(0, false);
  with_key.key = "what only we know";
  ranks::Meeting first(with_key, seconds(20));
  first.set("zero", "from 0");
  auto other = launch_of(1, false);
  const auto refused = [&] {
    return rank_one(other, seconds(1)).find("not rank 0 of this run") != std::string::npos;
  };
  // What rank 0 says of its missing rank.
  const auto said = [&](std::string_view why) {
    try {
      first.get("never", std::chrono::milliseconds(10));
    } catch (const std::exception& error) {
      DOCTEST_INFO(error.what());
      DOCTEST_CHECK(std::string_view(error.what()).find(why) != std::string_view::npos);
    }
  };
  said("another rank did not join in time");
  DOCTEST_CHECK(refused());
  said("in time; a process that says it is rank 1 has another TESSERA_RANKS_KEY or belongs to");
  other.key = with_key.key;
  other.size = 3;
  DOCTEST_CHECK(refused());
  said("in time; a process is rank 1 of 3, but this run has 2");
  other.rank = 2;
  DOCTEST_CHECK(refused());
  said("a process is rank 2 of 3, but this run has 2");
  other.rank = 1;
  other.size = 2;
  other.name = ".1";
  DOCTEST_CHECK(refused());
  said("belongs to another run");
  other.name = ".0";
  ranks::Meeting second(other, seconds(20));
  DOCTEST_CHECK(refused());
  said("two processes are rank 1");
  DOCTEST_CHECK(second.get("zero", seconds(20)) == "from 0");
}

DOCTEST_TEST_CASE("strangers neither stop a meeting nor store in it; a rank stores so much only") {
  ranks::Meeting first(launch_of(0, false), seconds(20));
  auto port = launch_of(0, false).port;
  std::vector<int> strangers;
  for (int i = 0; i < 150; ++i) strangers.push_back(loopback_socket(port, false));
  const std::string zeros(std::size_t{1} << 20U, '\0');
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(loopback_socket(port, false));
    ::send(strangers.back(), zeros.data(), zeros.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  first.set("zero", "from 0");
  DOCTEST_CHECK(rank_one(launch_of(1, false)) == "from 0");
  DOCTEST_CHECK(std::count_if(strangers.begin(), strangers.end(), [](int fd) {
    char ignored[64];
    while (::recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT) > 0) {}
    return errno == EAGAIN;  // still open
  }) <= 64);
  for (const int fd : strangers) ::close(fd);
  ranks::Meeting second(launch_of(1, false), seconds(20));
  DOCTEST_CHECK_THROWS(second.set("zero", "again"));
  ranks::Meeting third(launch_of(1, false), seconds(20));
  DOCTEST_CHECK_THROWS(third.set("much", zeros));
}

DOCTEST_TEST_CASE("a socket that has stopped accepting lets nobody in and keeps whom it has") {
  std::uint16_t port = 0;
  const int listener = loopback_socket(port, true), early = loopback_socket(port, false);
  const int inside = ::accept(listener, nullptr, nullptr);
  ranks::stop_accepting({listener});
  DOCTEST_CHECK(loopback_socket(port, false) < 0);
  char byte = 0;
  DOCTEST_CHECK(::send(early, "x", 1, 0) == 1);
  DOCTEST_CHECK(::recv(inside, &byte, 1, 0) == 1);
  for (const int fd : {listener, early, inside}) ::close(fd);
}
