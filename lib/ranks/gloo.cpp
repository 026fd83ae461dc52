// c10d's headers show Gloo only to who asks for it.
#define USE_C10D_GLOO  // NOLINT(cppcoreguidelines-macro-usage)
#include "ranks/gloo.h"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/io.h"
#include "ranks/meeting.h"
#include "ranks/proof.h"

namespace ranks {
namespace {

constexpr int kTurnTag = 1 << 20;  // of announce(); sums have tags from 0
constexpr int kExchangeTag = kTurnTag + 1, kFarewellTag = kTurnTag + 2;
// Of a wait without end: Gloo breaks all connections when a wait times out.
constexpr std::chrono::hours kNever{24 * 365};

// A rank that writes to one that is gone is to hear of it, not to die of SIGPIPE. A handler and not
// SIG_IGN, which the programs that a rank starts would inherit.
void outlive_broken_links() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

// Others may neither read nor write what c10d puts into it.
void make_private(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd < 0) core::fail_errno(core::Code::cannot_create, file, errno);
  ::close(fd);
}

// A meeting, as Gloo asks for it. Gloo stores and reads while it links the ranks, and not later.
class MeetingStore final : public c10d::Store {
 public:
  MeetingStore(std::shared_ptr<Meeting> meeting, std::chrono::milliseconds timeout)
      : Store(timeout), meeting_(std::move(meeting)) {}
  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<MeetingStore>(meeting_, getTimeout());
  }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    meeting_->set(key, std::string(value.begin(), value.end()));
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const auto value = meeting_->get(key, getTimeout());
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(
      const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const auto& key : keys) meeting_->get(key, timeout);
  }
  std::int64_t add(const std::string& /*key*/, std::int64_t /*value*/) override { lack("add"); }
  bool deleteKey(const std::string& /*key*/) override { lack("deleteKey"); }
  bool check(const std::vector<std::string>& /*keys*/) override { lack("check"); }
  std::int64_t getNumKeys() override { lack("getNumKeys"); }

 private:
  [[noreturn]] static void lack(const char* what) {
    core::bug("ranks: {} is missing at the meeting point", what);
  }
  std::shared_ptr<Meeting> meeting_;
};

// `meeting`: theirs, where they need neither a file nor the store of torchrun.
c10::intrusive_ptr<c10d::Store> store_of(const core::Launch& launch, const std::string& file,
    std::chrono::milliseconds timeout, std::shared_ptr<Meeting>& meeting) {
  c10::intrusive_ptr<c10d::Store> store;
  if (launch.host.empty()) {
    make_private(file);
    store = c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(launch.size));
    store->setTimeout(timeout);
  } else if (launch.one_machine || !launch.served) {
    meeting = std::make_shared<Meeting>(launch, timeout);
    store = c10::make_intrusive<MeetingStore>(meeting, timeout);
  } else {
    c10d::TCPStoreOptions options;
    options.port = launch.port;
    options.numWorkers = static_cast<std::size_t>(launch.size);
    options.waitWorkers = false;
    options.timeout = timeout;
    store = c10::make_intrusive<c10d::TCPStore>(launch.host, options);
  }
  return c10::make_intrusive<c10d::PrefixStore>("tessera/" + launch.name, store);
}

// Rank 0 makes it up, and all read it where they meet. Returns when all ranks are there, so that no
// port of Gloo is open while one waits for another.
std::string secret_of(c10d::Store& store, std::int64_t rank, std::int64_t size) {
  constexpr const char* kSecret = "secret";
  const auto here = [](std::int64_t who) { return fmt::format("here/{}", who); };
  const auto bytes = [](const std::string& text) {
    return std::vector<std::uint8_t>(text.begin(), text.end());
  };
  if (rank == 0) {
    for (std::int64_t other = 1; other < size; ++other) store.get(here(other));
    const auto secret = random_bytes(kProofBytes);
    store.set(kSecret, bytes(secret));
    return secret;
  }
  store.set(here(rank), bytes("here"));
  const auto secret = store.get(kSecret);
  return {secret.begin(), secret.end()};
}

// The address of this machine from which it reaches `host`; nothing where it does not, or only as
// machines reach themselves.
std::string address_towards(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  std::string address;
  for (const auto* each = found; each != nullptr && address.empty(); each = each->ai_next) {
    const int fd = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    auto* const name = reinterpret_cast<sockaddr*>(&own);
    char text[NI_MAXHOST];
    // Nothing is sent: the system looks up the way.
    if (::connect(fd, each->ai_addr, each->ai_addrlen) == 0 &&
        ::getsockname(fd, name, &length) == 0 &&
        ::getnameinfo(name, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0 &&
        !core::is_this_machine(text))
      address = text;
    ::close(fd);
  }
  ::freeaddrinfo(found);
  return address;
}

// The interfaces of GLOO_SOCKET_IFNAME; where all are on one machine the loopback; else the address
// from which this machine reaches MASTER_ADDR; else the one that this machine's name stands for.
std::vector<std::shared_ptr<gloo::transport::Device>> devices_of(const core::Launch& launch) {
  using Gloo = c10d::ProcessGroupGloo;
  std::vector<std::shared_ptr<gloo::transport::Device>> devices;
  const char* const named = core::own_environment("GLOO_SOCKET_IFNAME");
  std::string_view rest = named == nullptr ? "" : named;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    devices.push_back(Gloo::createDeviceForInterface(std::string(rest.substr(0, comma))));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!devices.empty()) return devices;
  if (launch.one_machine || core::is_this_machine(launch.host)) {
    const bool six = launch.host == "::1";
    return {Gloo::createDeviceForHostname(six ? "::1" : "127.0.0.1")};
  }
  const auto address = launch.host.empty() ? "" : address_towards(launch.host);
  if (!address.empty()) return {Gloo::createDeviceForHostname(address)};
  return {Gloo::createDefaultDevice()};
}

using Work = c10::intrusive_ptr<c10d::Work>;

class Links final : public Gloo {
 public:
  Links(std::int64_t rank, std::int64_t size, c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : Gloo(rank, size), gloo_(std::move(gloo)) {}

  void add(const Tensor& flat) override {
    std::vector<Tensor> list{flat};
    gloo_->allreduce(list)->wait();
  }
  void add_by_tree(const Tensor& flat) override;

  std::vector<Tensor> gather(const Tensor& own, const std::vector<std::int64_t>& lengths) override {
    constexpr std::int64_t kFewBytes = 1 << 20;  // allgather() copies this rank's own tensor
    const bool equal = std::ranges::count(lengths, lengths[0]) == std::ssize(lengths);
    if (!equal || own.numel() > kFewBytes) return gather_by_exchange(own, lengths);
    std::vector<std::vector<Tensor>> outputs(1);
    for (std::int64_t rank = 0; rank < size_; ++rank) outputs[0].push_back(torch::empty_like(own));
    std::vector<Tensor> inputs{own};
    gloo_->allgather(outputs, inputs)->wait();
    return outputs[0];
  }

  void exchange(
      std::int64_t first, const std::vector<Tensor>& out, const std::vector<Tensor>& in) override {
    std::vector<Work> work;
    const auto others = [&](const std::vector<Tensor>& all, const auto& transfer) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto rank = first + static_cast<std::int64_t>(i);
        if (rank != rank_ && all[i].numel() > 0) work.push_back(transfer(all[i], rank));
      }
    };
    others(in, [&](const Tensor& tensor, std::int64_t rank) {
      return receive(tensor, rank, kExchangeTag);
    });
    others(out,
        [&](const Tensor& tensor, std::int64_t rank) { return send(tensor, rank, kExchangeTag); });
    for (const auto& each : work) each->wait();
  }

  void announce(std::int64_t word, std::int64_t value) override {
    const Tensor words = torch::tensor({word, value}, torch::kInt64);
    std::vector<Work> sent;
    for (std::int64_t rank = 1; rank < size_; ++rank) sent.push_back(send(words, rank, kTurnTag));
    for (const auto& work : sent) work->wait();
  }

  void hear(std::int64_t& word, std::int64_t& value) override {
    const Tensor words = torch::zeros({2}, torch::kInt64);
    receive(words, 0, kTurnTag)->wait();
    const auto* const numbers = words.const_data_ptr<std::int64_t>();
    word = numbers[0], value = numbers[1];
  }

  std::unique_ptr<Farewell> expect_farewell() override {
    class Wait final : public Farewell {
     public:
      Wait(Links& links, std::int64_t rank) : work_(links.receive(word_, rank, kFarewellTag)) {}
      void wait() override { work_->wait(kNever); }
      void stop() override { work_->abort(); }

     private:
      Tensor word_ = torch::zeros({1}, torch::kUInt8);
      Work work_;
    };
    return std::make_unique<Wait>(*this, (rank_ + 1) % size_);
  }

  void farewell() override {
    send(torch::zeros({1}, torch::kUInt8), (rank_ + size_ - 1) % size_, kFarewellTag)->wait();
  }

  void prove(const std::string& secret);

 private:
  Work send(const Tensor& numbers, std::int64_t rank, int tag) {
    std::vector<Tensor> list{numbers};
    return gloo_->send(list, static_cast<int>(rank), tag);
  }
  Work receive(const Tensor& numbers, std::int64_t rank, int tag) {
    std::vector<Tensor> list{numbers};
    return gloo_->recv(list, static_cast<int>(rank), tag);
  }
  // Gives `out` to another rank and takes `in` from it; either may be empty.
  void swap(const Tensor& out, const Tensor& in, std::int64_t rank, int tag) {
    const auto received = in.numel() > 0 ? receive(in, rank, tag) : nullptr;
    const auto sent = out.numel() > 0 ? send(out, rank, tag) : nullptr;
    if (received) received->wait();
    if (sent) sent->wait();
  }
  Tensor spare_of(const Tensor& like, std::int64_t n) {
    if (!spare_.defined() || spare_.scalar_type() != like.scalar_type() || spare_.numel() < n)
      spare_ = torch::empty({n}, like.options());
    return spare_.narrow(0, 0, n);
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  Tensor spare_;  // what is received
};

// Each rank shows each other that it knows the secret: who reached Gloo's sockets without having
// met the others does not.
void Links::prove(const std::string& secret) {
  std::vector<Tensor> out, in;
  const auto of = [&](std::int64_t from, std::int64_t to) {
    return proof(secret, fmt::format("link {} {}", from, to));
  };
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    in.push_back(torch::zeros({kProofBytes}, torch::kUInt8));
    out.push_back(in.back().clone());
    const auto own = of(rank_, rank);
    std::copy(own.begin(), own.end(), out.back().data_ptr<std::uint8_t>());
  }
  exchange(0, out, in);
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    const auto* const bytes = in[static_cast<std::size_t>(rank)].const_data_ptr<std::uint8_t>();
    if (rank != rank_ && !equal_proofs(std::string(bytes, bytes + kProofBytes), of(rank, rank_)))
      core::fail(core::Code::rank_lost,
          "rank {} of {}: a connection as rank {} does not belong to this run; another program "
          "reaches the ports of the ranks",
          rank_, size_, rank);
  }
}

// Each rank ends up with the sum of a part of `flat` (halving), then all parts go round (doubling).
// The neighbour is added first, then the pair beside the own, ...; a + b = b + a to the bit.
void Links::add_by_tree(const Tensor& flat) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(size_))) return add(flat);
  struct Span {
    std::int64_t begin, length;
  };
  Span own = {0, flat.numel()};
  std::vector<Span> before;
  int tag = 0;
  for (std::int64_t step = 1; step < size_; step *= 2, ++tag) {
    const std::int64_t half = own.length / 2;
    const Span low = {own.begin, half}, high = {own.begin + half, own.length - half};
    const bool takes_low = (rank_ & step) == 0;
    const Span mine = takes_low ? low : high, theirs = takes_low ? high : low;
    const Tensor in = spare_of(flat, mine.length);
    swap(flat.narrow(0, theirs.begin, theirs.length), in, rank_ ^ step, tag);
    flat.narrow(0, mine.begin, mine.length).add_(in);
    before.push_back(own);
    own = mine;
  }
  for (std::int64_t step = size_ / 2; step > 0; step /= 2, ++tag) {
    const Span both = before.back();
    before.pop_back();
    const Span other = {
        own.begin == both.begin ? both.begin + own.length : both.begin, both.length - own.length};
    swap(flat.narrow(0, own.begin, own.length), flat.narrow(0, other.begin, other.length),
        rank_ ^ step, tag);
    own = both;
  }
}

}  // namespace

// "[/pytorch/.../pair.cc:534] Connection closed by peer [127.0.0.1]:40128\nException raised ...":
// the part that helps a user.
std::string reason(const std::exception& error) {
  std::string_view text = error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) text.remove_prefix(std::min(text.size(), text.find(']') + 1));
  while (text.starts_with(' ')) text.remove_prefix(1);
  constexpr std::size_t kMost = 160;
  return std::string(text.substr(0, kMost));
}

std::unique_ptr<Gloo> join_gloo(
    const core::Launch& launch, const std::string& folder, std::chrono::milliseconds timeout) {
  // c10d warns of hosts whose addresses have no name, and writes of each failure lines of its own
  // beside what it throws; TORCH_CPP_LOG_LEVEL still decides where it is set.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  outlive_broken_links();
  const std::string file = folder + "/" + kMeetingFile + launch.name;
  if (launch.host.empty()) core::make_folder(folder);
  std::shared_ptr<Meeting> meeting;
  std::vector<int> sockets;  // of Gloo
  std::string secret;
  std::unique_ptr<Links> links;
  try {
    const auto store = store_of(launch, file, timeout, meeting);
    secret = proof(launch.key, secret_of(*store, launch.rank, launch.size));
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    const auto others = listeners();
    options->devices = devices_of(launch);
    sockets = listeners();
    std::erase_if(sockets, [&](int fd) { return std::ranges::count(others, fd) > 0; });
    links = std::make_unique<Links>(launch.rank, launch.size,
        c10::make_intrusive<c10d::ProcessGroupGloo>(
            store, static_cast<int>(launch.rank), static_cast<int>(launch.size), options));
  } catch (const core::Error&) { throw; } catch (const std::exception& error) {
    if (launch.host.empty()) {
      std::error_code ignored;
      std::filesystem::remove(file, ignored);
    }
    const std::string where =
        launch.host.empty() ? file : fmt::format("{}:{}", launch.host, launch.port);
    core::fail(core::Code::rank_lost, "rank {} of {}: could not join the other ranks at {} ({})",
        launch.rank, launch.size, where, reason(error));
  }
  try {
    links->prove(secret);
    // All are linked: nobody else need reach them, and the file has done its work.
    links->add(torch::zeros({1}, torch::kFloat64));
  } catch (const core::Error&) { throw; } catch (const std::exception& error) {
    fail_lost(launch.rank, launch.size, reason(error));
  }
  stop_accepting(sockets);
  if (meeting) meeting->close();
  if (launch.host.empty() && launch.rank == 0) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
  return links;
}

}  // namespace ranks
