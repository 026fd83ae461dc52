// NVIDIA's NCCL: transfers tensors between GPUs without the host. Called through its C interface
// and not as c10d's ProcessGroupNCCL, whose headers need CUDA's and NCCL's, and whose library the
// programs do not link.

#include <c10/core/Event.h>
#include <dlfcn.h>

#include "core/launcher.h"
#include "ranks/transport.h"

// The functions of NCCL's C interface that are used here, with declarations of our own, so that
// programs neither need its header nor link it. Prototypes and numbers are those of nccl.h of
// NCCL 2.7 and later.
namespace ranks::nccl {

struct Comm;       // ncclComm
struct UniqueId {  // ncclUniqueId
  char bytes[128];
};
using Result = int;    // ncclResult_t, an enumeration
using Type = int;      // ncclDataType_t
using Operator = int;  // ncclRedOp_t
using Stream = void*;  // cudaStream_t

inline constexpr Result kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7;
inline constexpr Type kUint8 = 1, kFloat32 = 7, kFloat64 = 8;
inline constexpr Operator kSum = 0;

struct Calls {
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRank)(Comm** comm, int size, UniqueId id, int rank);
  Result (*CommDestroy)(Comm* comm);
  Result (*CommAbort)(Comm* comm);
  Result (*CommGetAsyncError)(Comm* comm, Result* error);
  const char* (*GetErrorString)(Result result);
  Result (*AllReduce)(const void* in, void* out, std::size_t count, Type type, Operator op,
      Comm* comm, Stream stream);
  Result (*ReduceScatter)(const void* in, void* out, std::size_t count_of_each, Type type,
      Operator op, Comm* comm, Stream stream);
  Result (*AllGather)(
      const void* in, void* out, std::size_t count_of_each, Type type, Comm* comm, Stream stream);
  Result (*Send)(const void* from, std::size_t count, Type type, int to, Comm* comm, Stream stream);
  Result (*Recv)(void* to, std::size_t count, Type type, int from, Comm* comm, Stream stream);
  Result (*GroupStart)();
  Result (*GroupEnd)();
};

/// Loads the library once. Throws Error{unavailable} that names the library or the function that is
/// missing.
const Calls& calls();

namespace {

template <class F> void find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(library, (std::string("nccl") + name).c_str()));
  if (function == nullptr)
    core::fail(
        core::Code::unavailable, "NCCL: nccl{} is missing; NCCL 2.7 or newer is needed", name);
}

Calls load() {
  const char* const named = core::own_environment("TESSERA_NCCL");
  const char* const file = named != nullptr ? named : "libnccl.so.2";
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    core::fail(core::Code::unavailable, "NCCL cannot be loaded ({})", why != nullptr ? why : file);
  }
  Calls calls{};
  find(library, "GetVersion", calls.GetVersion);
  find(library, "GetUniqueId", calls.GetUniqueId);
  find(library, "CommInitRank", calls.CommInitRank);
  find(library, "CommDestroy", calls.CommDestroy);
  find(library, "CommAbort", calls.CommAbort);
  find(library, "CommGetAsyncError", calls.CommGetAsyncError);
  find(library, "GetErrorString", calls.GetErrorString);
  find(library, "AllReduce", calls.AllReduce);
  find(library, "ReduceScatter", calls.ReduceScatter);
  find(library, "AllGather", calls.AllGather);
  find(library, "Send", calls.Send);
  find(library, "Recv", calls.Recv);
  find(library, "GroupStart", calls.GroupStart);
  find(library, "GroupEnd", calls.GroupEnd);
  return calls;
}

}  // namespace

const Calls& calls() {
  static const Calls all = load();
  return all;
}

}  // namespace ranks::nccl

namespace ranks {
namespace {

using Clock = std::chrono::steady_clock;

void expect(nccl::Result result, const char* call) {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const auto text = fmt::format("NCCL: {}: {}", call, nccl::calls().GetErrorString(result));
  if (result == nccl::kInvalidArgument || result == nccl::kInvalidUsage) core::bug("{}", text);
  throw std::runtime_error(text);
}

nccl::Type type_of(const Tensor& numbers) {
  return numbers.scalar_type() == torch::kFloat64 ? nccl::kFloat64 : nccl::kFloat32;
}

// Transfers that a device has not finished yet, and since when.
class Pending {
 public:
  explicit Pending(torch::Device device) : device_(device) {}

  // A call that transfers before it returns, or waits for the others until it can queue it.
  void begin() {
    const std::lock_guard lock(mutex_);
    called_ = Clock::now();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    called_.reset();
    if (device_.is_cpu()) return;
    queued_.push_back({Clock::now(), c10::Event(device_.type())});
    queued_.back().done.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  bool older_than(std::chrono::milliseconds age) {
    const std::lock_guard lock(mutex_);
    while (!queued_.empty() && queued_.front().done.query()) queued_.pop_front();
    const auto old = [&](Clock::time_point since) { return Clock::now() - since > age; };
    return (called_ && old(*called_)) || (!queued_.empty() && old(queued_.front().since));
  }

 private:
  struct Transfer {
    Clock::time_point since;
    c10::Event done;
  };
  torch::Device device_;
  std::mutex mutex_;
  std::optional<Clock::time_point> called_;
  std::deque<Transfer> queued_;
};

// The length to which NCCL's calls that take as much of each rank pad slices of these lengths; 0 if
// they would then transfer more than twice the slices, which are better exchanged one by one.
std::int64_t row_of(const std::vector<std::int64_t>& lengths) {
  constexpr std::int64_t kAlignment = 64;
  const auto longest = *std::max_element(lengths.begin(), lengths.end()),
             row = (longest + kAlignment - 1) / kAlignment * kAlignment, n = std::ssize(lengths),
             all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  return n * row <= 2 * (all + n * kAlignment) ? row : 0;
}

class Nccl final : public Transport {
 public:
  explicit Nccl(const Connection& connection)
      : Transport(connection.rank, connection.size), device_(connection.device),
        calls_(nccl::calls()), pending_(connection.device) {
    nccl::UniqueId id{};
    std::memcpy(
        id.bytes, connection.ticket.data(), std::min(sizeof(id.bytes), connection.ticket.size()));
    expect(calls_.CommInitRank(&comm_, static_cast<int>(size_), id, static_cast<int>(rank_)),
        "ncclCommInitRank");
    heart_.emplace(std::min<std::chrono::milliseconds>(kLook, connection.timeout / 4),
        [this, timeout = connection.timeout] { look(timeout); });
  }

  ~Nccl() override {
    heart_.reset();
    if (!failure()) calls_.CommDestroy(comm_);
  }

  void add(const Tensor& flat) override {
    transfer("ncclAllReduce", [&] {
      return calls_.AllReduce(flat.const_data_ptr(), flat.data_ptr(), count(flat), type_of(flat),
          nccl::kSum, comm_, stream());
    });
  }

  // Every rank gets its slice from all others, adds the slices by a tree, and sends the sum to all:
  // each sends and receives less than twice the bytes of `flat`, as with a ring.
  void add_by_tree(const Tensor& flat) override {
    const auto n = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
    std::vector<Tensor> slices;
    for (std::int64_t i = 0; i < size_; ++i) {
      const auto begin = i * flat.numel() / size_, end = (i + 1) * flat.numel() / size_;
      slices.push_back(flat.narrow(0, begin, end - begin));
    }
    const auto sum = Transport::reduce_scatter(slices, /*by_tree=*/true);
    if (me != 0) slices[me].copy_(sum);
    exchange(0, std::vector<Tensor>(n, slices[me]), slices);
  }

  Tensor reduce_scatter(std::vector<Tensor> slices, bool by_tree) override {
    const auto lengths = core::mapped(slices, &Tensor::numel);
    const auto row = row_of(lengths);
    if (by_tree || row == 0) return Transport::reduce_scatter(std::move(slices), by_tree);
    const Tensor whole = torch::zeros({size_, row}, slices[0].options());
    for (std::int64_t rank = 0; rank < size_; ++rank) {
      auto& slice = slices[static_cast<std::size_t>(rank)];
      whole[rank].narrow(0, 0, slice.numel()).copy_(slice);
      slice.reset();
    }
    const Tensor own = whole[rank_];  // in place
    transfer("ncclReduceScatter", [&] {
      return calls_.ReduceScatter(whole.const_data_ptr(), own.data_ptr(), count(own),
          type_of(whole), nccl::kSum, comm_, stream());
    });
    return own.narrow(0, 0, lengths[static_cast<std::size_t>(rank_)]);
  }

  std::vector<Tensor> gather(const Tensor& own, const std::vector<std::int64_t>& lengths) override {
    const auto row = row_of(lengths);
    if (row == 0) return gather_by_exchange(own, lengths);
    const Tensor whole = torch::empty({size_, row}, own.options());
    const Tensor mine = whole[rank_];  // in place
    mine.narrow(0, 0, own.numel()).copy_(own);
    transfer("ncclAllGather", [&] {
      return calls_.AllGather(
          mine.const_data_ptr(), whole.data_ptr(), count(mine), nccl::kUint8, comm_, stream());
    });
    return core::generated(size_, [&](std::int64_t rank) {
      return whole[rank].narrow(0, 0, lengths[static_cast<std::size_t>(rank)]);
    });
  }

  void exchange(
      std::int64_t first, const std::vector<Tensor>& out, const std::vector<Tensor>& in) override {
    transfer("ncclGroupEnd", [&] {
      const auto own_stream = stream();
      expect(calls_.GroupStart(), "ncclGroupStart");
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto rank = first + static_cast<std::int64_t>(i);
        if (rank == rank_) continue;
        const auto peer = static_cast<int>(rank);
        if (out[i].numel() > 0)
          expect(calls_.Send(out[i].const_data_ptr(), out[i].nbytes(), nccl::kUint8, peer, comm_,
                     own_stream),
              "ncclSend");
        if (in[i].numel() > 0)
          expect(
              calls_.Recv(in[i].data_ptr(), in[i].nbytes(), nccl::kUint8, peer, comm_, own_stream),
              "ncclRecv");
      }
      return calls_.GroupEnd();
    });
  }

 private:
  static constexpr std::chrono::seconds kLook{1};

  static std::size_t count(const Tensor& flat) { return static_cast<std::size_t>(flat.numel()); }

  nccl::Stream stream() const {
    if (!device_.is_cuda()) return nullptr;
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).native_handle();
  }

  template <class F> void transfer(const char* call, const F& queue) {
    expect_whole();
    const std::lock_guard lock(in_call_);
    pending_.begin();
    const auto result = queue();
    pending_.end();
    expect_whole();
    expect(result, call);
  }

  void expect_whole() const {
    if (const auto why = failure()) throw std::runtime_error(*why);
  }

  // A rank behind a network can be lost without an end of its connections.
  void look(std::chrono::milliseconds timeout) {
    nccl::Result error = nccl::kSuccess;
    {
      const std::lock_guard lock(alive_);
      if (failure()) return;
      calls_.CommGetAsyncError(comm_, &error);
    }
    if (error != nccl::kSuccess && error != nccl::kInProgress)
      abandon(fmt::format("NCCL: {}", calls_.GetErrorString(error)));
    else if (pending_.older_than(timeout))
      abandon("a transfer between GPUs took longer than --rank-timeout");
  }

  // Frees the communicator. A call that only queues is let out first; one that waits for a rank
  // which is gone ends by it.
  void end_transfers() override {
    const std::unique_lock call(in_call_, std::chrono::seconds(1));
    const std::lock_guard lock(alive_);
    calls_.CommAbort(comm_);
  }

  torch::Device device_;
  const nccl::Calls& calls_;
  nccl::Comm* comm_ = nullptr;
  Pending pending_;
  std::timed_mutex in_call_;
  std::mutex alive_;            // held while another thread uses or frees comm_
  std::optional<Heart> heart_;  // last member, because its thread uses the others
};

}  // namespace

std::string load_nccl(bool first) {
  const auto& calls = nccl::calls();
  nccl::UniqueId id{};
  if (first) expect(calls.GetUniqueId(&id), "ncclGetUniqueId");
  return {id.bytes, sizeof(id.bytes)};
}

std::unique_ptr<Transport> connect_nccl(const Connection& connection) {
  return std::make_unique<Nccl>(connection);
}

}  // namespace ranks
