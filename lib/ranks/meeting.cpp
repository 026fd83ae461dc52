#include "ranks/meeting.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/hash.h"
#include "core/temporary_file.h"
#include "ranks/proof.h"

namespace ranks {
namespace {

using Clock = std::chrono::steady_clock;
using Socket = core::Descriptor;

// The protocol. Rank 0 first sends these bytes and a nonce. A rank answers with the same bytes, its
// nonce, its number and its proof. Rank 0 answers with its own proof. Requests follow: a letter,
// the lengths of key and value, both. An answer is a length and a value.
constexpr std::string_view kGreeting = "TESSERA1";
constexpr std::size_t kNonceBytes = 16, kNumberBytes = sizeof(std::uint32_t);
constexpr std::size_t kGreetingBytes = kGreeting.size() + kNonceBytes;
constexpr std::size_t kHelloBytes = kGreetingBytes + kNumberBytes + kProofBytes;
constexpr std::size_t kHeaderBytes = 1 + 2 * kNumberBytes;
constexpr char kSet = 'S', kGet = 'G';

constexpr std::ptrdiff_t kMostStrangers = 64;  // unproven connections
constexpr std::chrono::seconds kProofTime{10};
constexpr std::size_t kMostKeyBytes = 1024;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10U;

std::size_t most_bytes(std::int64_t size) {
  return (std::size_t{64} << 10U) + (static_cast<std::size_t>(size) << 12U);
}
std::size_t most_keys(std::int64_t size) { return 64 + 2 * static_cast<std::size_t>(size); }

std::string number_bytes(std::size_t number) {
  const auto narrow = static_cast<std::uint32_t>(number);
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(narrow >> shift & 0xffU);
  return bytes;
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i)
    number |= std::uint32_t{static_cast<std::uint8_t>(bytes[at + i])} << 8 * i;
  return number;
}

[[noreturn]] void fail_to_meet(const std::string& what) { throw std::runtime_error(what); }

// The secret that both sides prove they know.
struct Run {
  explicit Run(const core::Launch& launch) : Run(launch, launch.size) {}
  Run(const core::Launch& launch, std::int64_t size)
      : key(launch.key), name(fmt::format("{}/{}", size, launch.name)) {}
  std::string of_rank(std::string_view nonces, std::size_t rank) const {
    return proof(key, fmt::format("rank {} of {} ", rank, name).append(nonces));
  }
  std::string of_first(std::string_view nonces, std::size_t rank) const {
    return proof(key, fmt::format("first, to rank {} of {} ", rank, name).append(nonces));
  }
  std::string key, name;
};

// What a process sent that was not let in.
struct Refused {
  std::size_t rank = 0;
  std::string nonces, proof;
  bool there = false;  // its proof is right, but the rank has joined

  // Returns why, as far as the proof says.
  std::string why(const core::Launch& launch) const {
    if (there) return fmt::format("two processes are rank {}", rank);
    constexpr std::int64_t kMostTried = 4096;
    for (std::int64_t size = 1; size <= kMostTried; ++size)
      if (size != launch.size && equal_proofs(proof, Run(launch, size).of_rank(nonces, rank)))
        return fmt::format(
            "a process is rank {} of {}, but this run has {}", rank, size, launch.size);
    return fmt::format(
        "a process that says it is rank {} has another TESSERA_RANKS_KEY or belongs to another run",
        rank);
  }
};

// A socket address of any family.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool is_loopback() const {
    char host[NI_MAXHOST];
    return ::getnameinfo(get(), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) == 0 &&
           core::is_this_machine(host);
  }
};

// The name is unique within a network namespace, like a port. The system frees it when the process
// ends.
Address local_address(const core::Launch& launch) {
  const std::string name = fmt::format(
      "tessera-ranks-{}-{}-{}", ::geteuid(), launch.port, core::hash128(launch.name).hex());
  Address address;
  auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  name.copy(local->sun_path + 1, sizeof(local->sun_path) - 1);  // the zero before it: abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::vector<Address> addresses_of(const std::string& host, std::uint16_t port, int flags = 0) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  const int error = ::getaddrinfo(
      host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) fail_to_meet(fmt::format("{}: {}", host, ::gai_strerror(error)));
  std::vector<Address> all;
  for (const auto* each = found; each != nullptr; each = each->ai_next) {
    all.emplace_back();
    std::memcpy(&all.back().storage, each->ai_addr, each->ai_addrlen);
    all.back().length = each->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return all;
}

Socket listener_at(const Address& address, const core::Launch& launch) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return socket;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6)
    ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (::bind(socket.fd(), address.get(), address.length) == 0 &&
      ::listen(socket.fd(), SOMAXCONN) == 0)
    return socket;
  if (errno == EADDRINUSE)
    core::fail(core::Code::unavailable,
        "{}:{}: another program uses this port; set MASTER_ADDR and MASTER_PORT", launch.host,
        launch.port);
  return Socket();
}

// Listens on those addresses of MASTER_ADDR that this machine has. It listens on all addresses if
// the name means the loopback only on this machine, or if others reach the machine by an address
// that it does not have.
std::vector<Socket> listeners_of(const core::Launch& launch) {
  std::vector<Socket> sockets;
  const auto listen = [&](const std::vector<Address>& addresses) {
    const bool loopback = core::is_this_machine(launch.host);
    for (const auto& address : addresses)
      if (loopback || !address.is_loopback())
        if (auto socket = listener_at(address, launch)) sockets.push_back(std::move(socket));
  };
  if (launch.one_machine) {
    if (auto socket = listener_at(local_address(launch), launch))
      sockets.push_back(std::move(socket));
  } else {
    listen(addresses_of(launch.host, launch.port));
    if (sockets.empty())
      for (const auto& address : addresses_of("", launch.port, AI_PASSIVE))
        if (auto socket = listener_at(address, launch)) sockets.push_back(std::move(socket));
  }
  if (sockets.empty()) fail_to_meet(fmt::format("cannot listen: {}", std::strerror(errno)));
  return sockets;
}

// Whether the other end of a Unix socket is a process of the same user. Always true for TCP, which
// does not tell.
bool is_same_user(int fd, bool local) {
  ucred other{};
  socklen_t length = sizeof(other);
  return !local || (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
                       other.uid == ::geteuid());
}

int wait_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1000));
}

}  // namespace

/// Rank 0's server: a thread that serves all connections.
class Meeting::Server {
 public:
  explicit Server(const core::Launch& launch)
      : launch_(launch), run_(launch), size_(launch.size), local_(launch.one_machine),
        listeners_(listeners_of(launch)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        used_(static_cast<std::size_t>(size_)) {
    if (!wake_) fail_to_meet(std::strerror(errno));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    wake();
    thread_.join();
  }

  void set(const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      if (!store(0, key, value)) fail_to_meet("a rank stored more than the limit");
    }
    wake();
  }

  std::string get(const std::string& key, Clock::time_point until) {
    std::unique_lock lock(mutex_);
    if (!stored_.wait_until(lock, until, [&] { return values_.contains(key); }))
      fail_to_meet(
          "another rank did not join in time" + (refused_ ? "; " + refused_->why(launch_) : ""));
    return values_.at(key);
  }

 private:
  struct Peer {
    Socket socket;
    Clock::time_point until;  // deadline of its proof
    std::string nonce, in, out;
    std::optional<std::size_t> rank{};
    std::optional<std::string> awaited{};
    bool gone = false;
  };

  void wake() const { ::eventfd_write(wake_.fd(), 1); }

  // Stores the first value of a key. The caller must hold mutex_.
  bool store(std::size_t rank, const std::string& key, const std::string& value) {
    auto& [keys, bytes] = used_[rank];
    bytes += value.size();
    if (++keys > most_keys(size_) || bytes > most_bytes(size_)) return false;
    if (!values_.emplace(key, value).second) return false;
    stored_.notify_all();
    return true;
  }

  void serve() {
    for (;;) {
      std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0}};
      for (const auto& listener : listeners_) polled.push_back({listener.fd(), POLLIN, 0});
      for (const auto& peer : peers_)
        polled.push_back({peer.socket.fd(),
            static_cast<short>(peer.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      ::poll(polled.data(), polled.size(), 1000);
      eventfd_t ignored = 0;
      ::eventfd_read(wake_.fd(), &ignored);
      {
        const std::lock_guard lock(mutex_);
        if (end_) return;
      }
      const std::size_t first = 1 + listeners_.size();
      for (std::size_t i = 0; i < peers_.size(); ++i)
        if (polled[first + i].revents != 0) hear(peers_[i]);
      for (auto& peer : peers_) {
        do {
          answer(peer);
          send(peer);
        } while (peer.rank && !peer.gone && !peer.awaited && peer.out.empty() && request(peer));
        if (!peer.rank && Clock::now() > peer.until) peer.gone = true;
      }
      std::erase_if(peers_, [](const Peer& peer) { return peer.gone; });
      for (std::size_t i = 0; i < listeners_.size(); ++i)
        if (polled[1 + i].revents != 0) accept(listeners_[i]);
    }
  }

  void accept(const Socket& listener) {
    Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const auto is_stranger = [](const Peer& peer) { return !peer.rank; };
    const bool full = !socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (full || std::count_if(peers_.begin(), peers_.end(), is_stranger) >= kMostStrangers) {
      const auto oldest = std::find_if(peers_.begin(), peers_.end(), is_stranger);
      if (oldest != peers_.end()) peers_.erase(oldest);
      if (full) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!socket || !is_same_user(socket.fd(), local_)) return;
    Peer peer{std::move(socket), Clock::now() + kProofTime, random_bytes(kNonceBytes), "", ""};
    peer.out = std::string(kGreeting) + peer.nonce;
    send(peer);
    peers_.push_back(std::move(peer));
  }

  void hear(Peer& peer) {
    std::string piece(kPieceBytes, '\0');
    const auto got = ::recv(peer.socket.fd(), piece.data(), piece.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      peer.gone = true;
      return;
    }
    peer.in.append(piece, 0, static_cast<std::size_t>(got));
    if (!peer.rank) welcome(peer);
    if (peer.in.size() > kPieceBytes + kMostKeyBytes + most_bytes(size_)) peer.gone = true;
  }

  // Checks the proof of a rank once it is complete.
  void welcome(Peer& peer) {
    const auto start = std::string_view(peer.in).substr(0, kGreeting.size());
    if (start != kGreeting.substr(0, start.size())) peer.gone = true;
    if (peer.gone || peer.in.size() < kHelloBytes) return;
    const std::size_t rank = number_at(peer.in, kGreetingBytes);
    const std::string nonces = peer.nonce + peer.in.substr(kGreeting.size(), kNonceBytes);
    const bool there = std::ranges::find(peers_, rank, &Peer::rank) != peers_.end();
    const std::string proof = peer.in.substr(kGreetingBytes + kNumberBytes, kProofBytes);
    const bool proven = equal_proofs(proof, run_.of_rank(nonces, rank));
    peer.gone = rank == 0 || rank >= used_.size() || there || !proven;
    if (peer.gone) {
      const std::lock_guard lock(mutex_);
      refused_ = Refused{rank, nonces, proof, proven && there};
      return;
    }
    peer.rank = rank;
    peer.in.erase(0, kHelloBytes);
    peer.out += run_.of_first(nonces, rank);
  }

  // Handles the next request if it is complete.
  bool request(Peer& peer) {
    if (peer.in.size() < kHeaderBytes) return false;
    const char what = peer.in[0];
    const std::size_t key = number_at(peer.in, 1), value = number_at(peer.in, 1 + kNumberBytes);
    if ((what != kSet && what != kGet) || key > kMostKeyBytes || value > most_bytes(size_)) {
      peer.gone = true;
      return false;
    }
    if (peer.in.size() < kHeaderBytes + key + value) return false;
    const std::string name = peer.in.substr(kHeaderBytes, key);
    if (what == kGet) {
      peer.awaited = name;
    } else {
      const std::lock_guard lock(mutex_);
      peer.gone = !store(*peer.rank, name, peer.in.substr(kHeaderBytes + key, value));
      peer.out += number_bytes(0);
    }
    peer.in.erase(0, kHeaderBytes + key + value);
    return true;
  }

  void answer(Peer& peer) {
    if (!peer.awaited) return;
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(*peer.awaited);
    if (found == values_.end()) return;
    peer.out += number_bytes(found->second.size()) + found->second;
    peer.awaited.reset();
  }

  static void send(Peer& peer) {
    if (peer.out.empty() || peer.gone) return;
    const auto sent = ::send(peer.socket.fd(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (sent > 0) peer.out.erase(0, static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) peer.gone = true;
  }

  const core::Launch launch_;
  const Run run_;
  const std::int64_t size_;
  const bool local_;
  std::vector<Socket> listeners_;
  Socket wake_;
  std::vector<Peer> peers_;  // used by the thread only; oldest first
  std::mutex mutex_;         // guards the members below
  std::condition_variable stored_;
  bool end_ = false;
  std::optional<Refused> refused_;  // the last one
  std::map<std::string, std::string> values_;
  std::vector<std::pair<std::size_t, std::size_t>> used_;  // keys and bytes of each rank
  std::thread thread_;                                     // last: it uses the other members
};

/// Another rank's connection to rank 0.
class Meeting::Client {
 public:
  Client(const core::Launch& launch, Clock::time_point until) {
    const Run run(launch);
    std::string why = "rank 0 does not answer";
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLastPause)) {
      try {
        const auto addresses = launch.one_machine ? std::vector{local_address(launch)}
                                                  : addresses_of(launch.host, launch.port);
        for (const auto& address : addresses)
          if (connect(address, launch, run, until, why)) return;
      } catch (const std::runtime_error& error) { why = error.what(); }
      if (Clock::now() + pause > until) fail_to_meet(why);
      std::this_thread::sleep_for(pause);
    }
  }

  std::string ask(
      char what, const std::string& key, const std::string& value, Clock::time_point until) {
    const std::string text =
        what + number_bytes(key.size()) + number_bytes(value.size()) + key + value;
    for (std::size_t done = 0; done < text.size();) {
      await(POLLOUT, until);
      const auto sent = ::send(socket_.fd(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) fail_to_meet(std::strerror(errno));
      if (sent > 0) done += static_cast<std::size_t>(sent);
    }
    const std::size_t length = number_at(receive(kNumberBytes, until), 0);
    return receive(length, until);
  }

 private:
  static constexpr std::chrono::milliseconds kFirstPause{20}, kLastPause{500};

  bool connect(const Address& address, const core::Launch& launch, const Run& run,
      Clock::time_point until, std::string& why) {
    until = std::min(until, Clock::now() + kProofTime);
    socket_ = Socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return false;
    if (::connect(socket_.fd(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
      if (!launch.one_machine) why = std::strerror(errno);
      return false;
    }
    await(POLLOUT, until);
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      why = std::strerror(error);
      return false;
    }
    why =
        "the program that listens there is not rank 0 of this run, or has another "
        "TESSERA_RANKS_KEY or number of ranks";
    if (!is_same_user(socket_.fd(), launch.one_machine)) return false;
    const std::string greeting = receive_or_nothing(kGreetingBytes, until);
    if (!greeting.starts_with(kGreeting)) return false;
    const auto rank = static_cast<std::size_t>(launch.rank);
    const std::string nonce = random_bytes(kNonceBytes),
                      nonces = greeting.substr(kGreeting.size()) + nonce,
                      hello = std::string(kGreeting) + nonce + number_bytes(rank) +
                              run.of_rank(nonces, rank);
    if (::send(socket_.fd(), hello.data(), hello.size(), MSG_NOSIGNAL) != std::ssize(hello))
      return false;
    return equal_proofs(receive_or_nothing(kProofBytes, until), run.of_first(nonces, rank));
  }

  void await(short what, Clock::time_point until) const {
    pollfd polled = {socket_.fd(), what, 0};
    while (::poll(&polled, 1, wait_ms(until)) <= 0)
      if (Clock::now() > until) fail_to_meet("another rank did not join in time");
  }

  // Returns fewer than `n` bytes if the other end has closed.
  std::string receive_or_nothing(std::size_t n, Clock::time_point until) const {
    std::string bytes(n, '\0');
    for (std::size_t done = 0; done < n;) {
      await(POLLIN, until);
      const auto got = ::recv(socket_.fd(), bytes.data() + done, n - done, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return {};
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

  std::string receive(std::size_t n, Clock::time_point until) const {
    auto bytes = receive_or_nothing(n, until);
    if (bytes.size() < n) fail_to_meet("rank 0 has left");
    return bytes;
  }

  Socket socket_;
};

Meeting::Meeting(const core::Launch& launch, std::chrono::milliseconds timeout) {
  if (launch.rank == 0) server_ = std::make_unique<Server>(launch);
  else client_ = std::make_unique<Client>(launch, Clock::now() + timeout);
}

Meeting::~Meeting() = default;

void Meeting::set(const std::string& key, const std::string& value) {
  if (server_) server_->set(key, value);
  else if (client_) client_->ask(kSet, key, value, Clock::now() + kProofTime);
  else fail_to_meet("the meeting is over");
}

std::string Meeting::get(const std::string& key, std::chrono::milliseconds timeout) {
  if (server_) return server_->get(key, Clock::now() + timeout);
  if (client_) return client_->ask(kGet, key, "", Clock::now() + timeout);
  fail_to_meet("the meeting is over");
}

void Meeting::close() {
  server_.reset();
  client_.reset();
}

}  // namespace ranks
