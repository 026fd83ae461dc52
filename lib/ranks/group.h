#pragma once
// The processes of one run, and the few things that they do together. c10d's Gloo moves the bytes;
// nobody sees it but group.cpp.

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

/// How numbers are added over ranks.
enum class Sum {
  tree,  ///< with a power of two of ranks: neighbours, then pairs of neighbours, ...; else as fast
  fast,  ///< c10d's allreduce: its own order, the same bytes for the same number of ranks
};

/// All ranks must call the same members in the same order. One process alone is a group of one,
/// which does nothing and needs no network. Members throw Error{rank_lost} when another rank is
/// gone or silent for longer than the timeout; then this process can only end. Tensors are on the
/// CPU and contiguous. Not thread safe.
class Group {
 public:
  static std::shared_ptr<Group> alone();
  /// Returns when all ranks are there and have proved to each other that they are of this run. From
  /// then on nobody else can connect to any of them. A rank that meets the others by a file makes
  /// `folder` if need be; the file is gone when they end.
  static std::shared_ptr<Group> join(const core::Launch& launch, const std::string& folder,
                                     std::chrono::milliseconds timeout);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  /// This rank's number among those of its machine, as the launcher says; 0 where it does not.
  std::int64_t local() const { return local_; }
  bool first() const { return rank_ == 0; }
  bool is_alone() const { return size_ == 1; }

  /// Replaces `numbers` (any shape, float32 or float64) by the sum over ranks, the same bytes on
  /// all of them. With Sum::tree and N ranks, N a power of two, these are the bytes of
  ///   ((r0 + r1) + (r2 + r3)) + ...
  /// Halving and doubling: a rank sends and receives twice the tensor's bytes at most.
  void sum(torch::Tensor& numbers, Sum how = Sum::tree);

  /// Every rank's tensor, in their order. All have one shape and dtype.
  std::vector<torch::Tensor> gather(const torch::Tensor& own);
  /// Every rank's text, of any length.
  std::vector<std::string> gather(const std::string& own);

  /// Gives out[i] to rank `first` + i and takes in[i] from it, for all i at once; the ranks from
  /// `first` on, this one among them, do so with each other. What is empty stays; so does the own.
  void exchange(std::int64_t first, const std::vector<torch::Tensor>& out,
                const std::vector<torch::Tensor>& in);

  /// Rank 0's value, on all ranks.
  std::int64_t from_first(std::int64_t value);
  /// The bits that are set on any rank; of the lowest eight.
  unsigned any(unsigned bits);

  /// Rank 0 works while the others wait, as long as it takes: rank 0 tells them that it is alive.
  /// Returns what `work` did, on all ranks. If it throws an Error, the others throw one of the same
  /// code.
  std::int64_t first_does(const std::function<std::int64_t()>& work);
  /// Every rank works for itself, without the others, as long as it takes: those who are done hear
  /// that the others are alive. If one throws an Error, those that did not throw one of the same
  /// code, so that all leave alike.
  /// Where `stopped` is true of one, all hear of it within seconds.
  void together(const std::function<void()>& work, const std::function<bool()>& stopped = nullptr);
  /// In together(): another rank was stopped or lost, and the work is in vain.
  bool interrupted() const { return interrupted_; }

 private:
  struct Links;
  Group();
  template <class F>
  void guarded(const F& transfer) const;  // c10d's exceptions as Error{rank_lost}
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
