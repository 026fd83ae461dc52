// A library with NCCL's C interface for tests without a GPU: ranks are processes of one machine,
// "device" pointers are host memory, and each call transfers before it returns. As on GPUs that are
// linked directly, nobody notices a rank that is gone: calls wait until ncclCommAbort().
//
// All transfers are messages in channels, one for each direction between two ranks, in a shared
// file of /dev/shm that the first rank removes once all have opened it.
//
// If NCCL_STUB_LOG names a file, each communicator adds a line "RANK CALLS BYTES" to it when it is
// destroyed: what this process has called and has sent to other ranks.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

enum Result {
  kSuccess = 0,
  kSystemError = 2,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6
};
enum Type { kUint8 = 1, kFloat32 = 7, kFloat64 = 8 };

constexpr std::size_t kChannelBytes = std::size_t{1} << 16, kIdBytes = 128;

struct Channel {
  std::atomic<std::uint64_t> written, read;  // bytes, from the start
  char bytes[kChannelBytes];
};

struct Shared {
  std::atomic<int> joined;
  Channel channels[];  // [from * size + to]
};

std::atomic<int> g_calls = 0;           // of collectives and groups, in this process
std::atomic<std::int64_t> g_bytes = 0;  // sent to other ranks by this process

void rest() { ::usleep(50); }

std::size_t bytes_of(int type) { return type == kFloat64 ? 8 : type == kFloat32 ? 4 : 1; }

}  // namespace

struct ncclComm {
  int rank, size;
  Shared* shared;
  std::atomic<bool> aborted = false;
  Channel& channel(int from, int to) const { return shared->channels[from * size + to]; }
};

struct ncclUniqueId {
  char bytes[kIdBytes];
};

namespace {

struct Message {
  ncclComm* comm;
  Channel* channel;
  bool out;
  char* bytes;
  std::size_t left;

  bool advance() {
    const auto written = channel->written.load(std::memory_order_acquire),
               read = channel->read.load(std::memory_order_acquire);
    const auto at = out ? written : read;
    const auto room = out ? kChannelBytes - (written - read) : written - read;
    const auto n = std::min({left, static_cast<std::size_t>(room),
        kChannelBytes - static_cast<std::size_t>(at % kChannelBytes)});
    if (n == 0) return false;
    char* const there = channel->bytes + at % kChannelBytes;
    std::memcpy(out ? there : bytes, out ? bytes : there, n);
    (out ? channel->written : channel->read).store(at + n, std::memory_order_release);
    bytes += n;
    left -= n;
    return true;
  }
};

thread_local int t_groups = 0;
thread_local std::vector<Message> t_messages;

// Messages of one channel go in their order.
int transfer(std::vector<Message> messages) {
  while (true) {
    bool waits = false, moved = false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto& message = messages[i];
      if (message.left == 0) continue;
      waits = true;
      const bool behind =
          std::any_of(messages.begin(), messages.begin() + static_cast<long>(i), [&](auto& other) {
            return other.left > 0 && other.channel == message.channel && other.out == message.out;
          });
      moved = (!behind && message.advance()) || moved;
      if (message.comm->aborted) return kRemoteError;
    }
    if (!waits) return kSuccess;
    if (!moved) rest();
  }
}

void add_message(std::vector<Message>& to, ncclComm* comm, int peer, bool out, const void* bytes,
    std::size_t n) {
  Channel& channel = out ? comm->channel(comm->rank, peer) : comm->channel(peer, comm->rank);
  if (out && peer != comm->rank) g_bytes += static_cast<std::int64_t>(n);
  to.push_back({comm, &channel, out, const_cast<char*>(static_cast<const char*>(bytes)), n});
}

// Every rank's `own`, in order of rank.
int all_of(ncclComm* comm, const void* own, std::size_t n, std::vector<char>& all) {
  all.resize(n * static_cast<std::size_t>(comm->size));
  std::vector<Message> messages;
  for (int peer = 0; peer < comm->size; ++peer) {
    add_message(messages, comm, peer, true, own, n);
    add_message(messages, comm, peer, false, all.data() + n * static_cast<std::size_t>(peer), n);
  }
  return transfer(std::move(messages));
}

// From the last rank to the first: an order of its own.
template <class T> void add(const std::vector<char>& all, int size, std::size_t count, void* out) {
  std::vector<T> sum(count), part(count);
  for (int rank = size - 1; rank >= 0; --rank) {
    std::memcpy(part.data(), all.data() + static_cast<std::size_t>(rank) * count * sizeof(T),
        count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  std::memcpy(out, sum.data(), count * sizeof(T));
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22203;
  return kSuccess;
}

int ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  std::memset(id->bytes, 0, sizeof(id->bytes));
  std::snprintf(
      id->bytes, sizeof(id->bytes), "/tessera-nccl-%d-%d", static_cast<int>(::getpid()), ++made);
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int size, ncclUniqueId id, int rank) {
  if (rank < 0 || rank >= size || id.bytes[0] != '/') return kInvalidArgument;
  const std::size_t bytes =
      sizeof(Shared) + sizeof(Channel) * static_cast<std::size_t>(size * size);
  const int fd = ::shm_open(id.bytes, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kSystemError;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return kSystemError;
  auto* const shared = static_cast<Shared*>(memory);
  ++shared->joined;
  for (int waits = 0; shared->joined < size; ++waits) {
    if (waits == 1'000'000) return kSystemError;
    rest();
  }
  if (rank == 0) ::shm_unlink(id.bytes);
  *comm = new ncclComm{rank, size, shared};
  return kSuccess;
}

int ncclCommDestroy(ncclComm* comm) {
  const char* const log = std::getenv("NCCL_STUB_LOG");
  if (std::FILE* const file = log != nullptr ? std::fopen(log, "a") : nullptr) {
    std::fprintf(
        file, "%d %d %lld\n", comm->rank, g_calls.load(), static_cast<long long>(g_bytes.load()));
    std::fclose(file);
  }
  delete comm;
  return kSuccess;
}

// A call that waits still looks at it: not freed.
int ncclCommAbort(ncclComm* comm) {
  comm->aborted = true;
  return kSuccess;
}

int ncclCommGetAsyncError(ncclComm* /*comm*/, int* error) {
  *error = kSuccess;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kSuccess       ? "no error"
         : result == kRemoteError ? "remote process exited"
                                  : "an error of the stub";
}

int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int op, ncclComm* comm,
    void* /*stream*/) {
  ++g_calls;
  if (op != 0 || t_groups > 0 || (type != kFloat32 && type != kFloat64)) return kInvalidUsage;
  std::vector<char> all;
  if (const int result = all_of(comm, in, count * bytes_of(type), all); result != kSuccess)
    return result;
  type == kFloat64 ? add<double>(all, comm->size, count, out)
                   : add<float>(all, comm->size, count, out);
  return kSuccess;
}

int ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int op,
    ncclComm* comm, void* /*stream*/) {
  ++g_calls;
  if (op != 0 || t_groups > 0 || (type != kFloat32 && type != kFloat64)) return kInvalidUsage;
  const auto* const slices = static_cast<const char*>(in);
  const auto bytes = count * bytes_of(type);
  std::vector<char> all(bytes * static_cast<std::size_t>(comm->size));
  std::vector<Message> messages;
  for (int peer = 0; peer < comm->size; ++peer) {
    const auto at = bytes * static_cast<std::size_t>(peer);
    add_message(messages, comm, peer, true, slices + at, bytes);
    add_message(messages, comm, peer, false, all.data() + at, bytes);
  }
  if (const int result = transfer(std::move(messages)); result != kSuccess) return result;
  type == kFloat64 ? add<double>(all, comm->size, count, out)
                   : add<float>(all, comm->size, count, out);
  return kSuccess;
}

int ncclAllGather(
    const void* in, void* out, std::size_t count, int type, ncclComm* comm, void* /*stream*/) {
  ++g_calls;
  if (t_groups > 0) return kInvalidUsage;
  std::vector<char> all;
  if (const int result = all_of(comm, in, count * bytes_of(type), all); result != kSuccess)
    return result;
  std::memcpy(out, all.data(), all.size());
  return kSuccess;
}

int ncclGroupStart() {
  ++t_groups;
  return kSuccess;
}

int ncclGroupEnd() {
  if (--t_groups > 0) return kSuccess;
  ++g_calls;
  return transfer(std::exchange(t_messages, {}));
}

int ncclSend(
    const void* from, std::size_t count, int type, int peer, ncclComm* comm, void* /*stream*/) {
  if (t_groups == 0) return kInvalidUsage;
  add_message(t_messages, comm, peer, true, from, count * bytes_of(type));
  return kSuccess;
}

int ncclRecv(void* to, std::size_t count, int type, int peer, ncclComm* comm, void* /*stream*/) {
  if (t_groups == 0) return kInvalidUsage;
  add_message(t_messages, comm, peer, false, to, count * bytes_of(type));
  return kSuccess;
}

/// Returns the bytes that this process has sent to other ranks.
std::int64_t nccl_stub_bytes() { return g_bytes; }
}
