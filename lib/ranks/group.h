#pragma once
// The processes of a run and their collective operations. c10d's Gloo transfers the data; only
// group.cpp uses it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/launcher.h"
#include "nn/base/torch.h"

namespace ranks {

/// Order of summation over ranks.
enum class Sum {
  tree,  ///< pairwise by a tree, if the number of ranks is a power of two; else as fast
  fast,  ///< c10d's allreduce: its own order, bit-reproducible for a fixed number of ranks
};

/// A group of processes. All ranks must call the same members in the same order. A single process
/// is a group of one, without communication. Members throw Error{rank_lost} if another rank is gone
/// or silent for longer than the timeout; the process must then exit. Tensors are on the CPU and
/// contiguous. Not thread safe.
class Group {
 public:
  static std::shared_ptr<Group> alone();
  /// Returns when all ranks have connected and authenticated one another; afterwards no other
  /// process can connect. A rank that uses a rendezvous file creates `folder` if needed; the file
  /// is removed once all ranks have joined.
  static std::shared_ptr<Group> join(const core::Launch& launch, const std::string& folder,
                                     std::chrono::milliseconds timeout);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  /// Returns this rank's number among those of its machine, as given by the launcher; 0 if unknown.
  std::int64_t local() const { return local_; }
  bool first() const { return rank_ == 0; }
  bool is_alone() const { return size_ == 1; }

  /// Replaces `numbers` (any shape, float32 or float64) by the sum over ranks, byte-identical on
  /// all ranks. With Sum::tree and N ranks, N a power of two, the sum is
  ///   ((r0 + r1) + (r2 + r3)) + ...
  /// Uses recursive halving and doubling: each rank sends and receives at most twice the tensor's
  /// bytes.
  void sum(torch::Tensor& numbers, Sum how = Sum::tree);

  /// Returns every rank's tensor, in order of rank; all have equal shape and dtype.
  std::vector<torch::Tensor> gather(const torch::Tensor& own);
  /// Returns every rank's text, of any length.
  std::vector<std::string> gather(const std::string& own);

  /// Sends out[i] to rank `first` + i and receives in[i] from it, for all i at once; the ranks from
  /// `first` on, including this one, exchange with one another. Skips empty tensors and this rank's
  /// own.
  void exchange(std::int64_t first, const std::vector<torch::Tensor>& out,
                const std::vector<torch::Tensor>& in);

  /// Returns rank 0's value on all ranks.
  std::int64_t from_first(std::int64_t value);
  /// Returns the bitwise or over ranks, of the lowest eight bits.
  unsigned any(unsigned bits);

  /// Runs `work` on rank 0 while the other ranks wait; rank 0 sends heartbeats, so the duration is
  /// unlimited. Returns the result of `work` on all ranks. If it throws an Error, the other ranks
  /// throw one with an equal code.
  std::int64_t first_does(const std::function<std::int64_t()>& work);
  /// Runs `work` on every rank independently; ranks that have finished receive heartbeats from the
  /// others, so the duration is unlimited. If a rank throws an Error, ranks that did not throw one
  /// with an equal code. If `stopped` returns true on a rank, all ranks learn it within seconds.
  void together(const std::function<void()>& work, const std::function<bool()>& stopped = nullptr);
  /// Returns, within together(), whether another rank was stopped or lost, so that further work is
  /// useless.
  bool interrupted() const { return interrupted_; }

 private:
  struct Links;
  Group();
  template <class F>
  void guarded(const F& transfer) const;  // converts c10d's exceptions to Error{rank_lost}
  [[noreturn]] void leave_as(std::int64_t rank, std::int64_t code) const;
  void prove_links(const std::string& secret);
  void add_by_tree(torch::Tensor& flat);
  std::chrono::milliseconds beat() const;

  std::int64_t rank_ = 0, size_ = 1, local_ = 0;
  std::chrono::milliseconds timeout_{};
  std::atomic<bool> interrupted_ = false;
  std::unique_ptr<Links> links_;
};

}  // namespace ranks
