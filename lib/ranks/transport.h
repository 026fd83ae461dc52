#pragma once
// How tensors get from rank to rank: one implementation per library.
// The libraries that move tensors between ranks.
// Heartbeat thread.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base.h"
#include "nn/base/torch.h"

namespace ranks {

using torch::Tensor;

/// The links of this rank to all other ranks, by one library. All ranks must call the same members
/// in the same order. Tensors are contiguous and on the device that the transport serves. On a
/// device with streams, a transfer is queued on the current stream of the device, and the member
/// returns. Members throw std::exception if a transfer fails. Not thread safe, except abandon() and
/// failure().
class Transport {
 public:
  Transport(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {}
  virtual ~Transport() = default;
  Transport(Transport&&) = delete;

  /// Replaces `flat` (n), float32 or float64, by the sum over ranks, in the library's order.
  virtual void add(const torch::Tensor& flat) = 0;
  /// Like add(), in the order ((r0 + r1) + (r2 + r3)) + ... if the number of ranks is a power of
  /// two; else in an order that depends on the number of ranks only, or like add().
  virtual void add_by_tree(const torch::Tensor& flat) = 0;
  /// Returns the bytes of all ranks, uint8: of rank r the lengths[r] that it gives as `own`.
  virtual std::vector<torch::Tensor> gather(
      const torch::Tensor& own, const std::vector<std::int64_t>& lengths) = 0;
  /// Adds slices over ranks and returns the sum of slices[rank]: slices[r] (n_r), float32 or
  /// float64, is this rank's part of rank r's sum. The order is ((r0 + r1) + (r2 + r3)) + ... with
  /// `by_tree`; else that of the ranks, or the library's. Overwrites slices[rank], and frees the
  /// others as soon as they are sent if the caller has moved them here.
  virtual torch::Tensor reduce_scatter(std::vector<torch::Tensor> slices, bool by_tree);
  /// Sends out[i] to rank `first` + i and receives in[i] from it, for all i at once. Skips empty
  /// tensors and this rank's own.
  virtual void exchange(std::int64_t first, const std::vector<torch::Tensor>& out,
      const std::vector<torch::Tensor>& in) = 0;

  /// Ends all transfers that are queued or in progress, which leaves garbage in their tensors.
  /// `why` becomes the result of failure(), which is set before a transfer ends.
  void abandon(const std::string& why);
  /// Returns the reason of the first abandon(), or nullopt.
  std::optional<std::string> failure() const;

 protected:
  virtual void end_transfers() {}
  /// gather() by exchange().
  std::vector<torch::Tensor> gather_by_exchange(
      const torch::Tensor& own, const std::vector<std::int64_t>& lengths);
  std::int64_t rank_, size_;

 private:
  mutable std::mutex failure_mutex_;
  std::optional<std::string> failure_;
};

/// Adds tensors of equal shape in place: in pairs ((t0 + t1) + (t2 + t3)) + ..., else in turn. The
/// sum is in parts[0]; in pairs the others are overwritten.
void add_up(const std::vector<torch::Tensor>& parts, bool in_pairs);

/// Throws Error{rank_lost} with one line for the user of rank `rank` of `size`.
[[noreturn]] void fail_lost(std::int64_t rank, std::int64_t size, const std::string& why);

/// What a transport between devices is made of.
struct Connection {
  std::int64_t rank = 0, size = 1;
  torch::Device device = torch::kCPU;
  std::chrono::milliseconds timeout{};
  std::string ticket;  ///< rank 0's, the same on all ranks
};

struct Library {
  std::string_view name;
  /// Loads the library; throws Error{unavailable} that names what is missing. Returns this rank's
  /// ticket, of which rank 0's counts. Null: tensors of devices are copied to the host.
  std::string (*load)(bool first);
  /// Connects all ranks. Throws std::exception.
  std::unique_ptr<Transport> (*connect)(const Connection& connection);
};

/// Returns the library of this name. Throws Error{usage} if there is none.
const Library& library(const std::string& name);

/// NCCL, of libnccl.so.2 or the file that the environment variable TESSERA_NCCL names.
std::string load_nccl(bool first);
std::unique_ptr<Transport> connect_nccl(const Connection& connection);

/// Calls `beat` periodically in a separate thread, until end() or until it throws.
class Heart {
 public:
  Heart(std::chrono::milliseconds every, std::function<void()> beat)
      : thread_([this, every, beat = std::move(beat)] {
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, every, [this] { return end_; })) {
            try {
              beat();
            } catch (...) {
              failure_ = std::current_exception();
              return;
            }
          }
        }) {}
  ~Heart() { stop(); }
  Heart(Heart&&) = delete;
  /// Stops the thread and rethrows the exception of `beat`, if any.
  void end() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last member, because the thread uses the others
};

}  // namespace ranks
