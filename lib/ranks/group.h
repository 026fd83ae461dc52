#pragma once
// The processes of a run and their collective operations. Transports (transport.h) move the data.
// Checks that the processes of a run have equal settings.
// Ranks that share a micro-batch: each processes some rows, and all see the keys of all rows.
// Options for programs that run as several processes.

#include <atomic>
#include <chrono>

#include "core/launcher.h"
#include "core/options.h"
#include "nn/base/torch.h"

namespace ranks {

class Gloo;
class Transport;

/// Order of summation over ranks.
enum class Sum {
  tree,  ///< pairwise by a tree, if the number of ranks is a power of two; else in an order that
         ///< depends on the number of ranks
  fast,  ///< the library's own order. Gloo: bit-reproducible for a fixed number of ranks; NCCL: for
         ///< fixed GPUs and links between them
};

/// A group of processes. All ranks must call the same members in the same order. A single process
/// is a group of one, without communication. Members throw Error{rank_lost} if another rank is gone
/// or silent for longer than the timeout; the process must then exit. Tensors are contiguous and on
/// the CPU, or on the device of connect(). Not thread safe.
class Group {
 public:
  static std::shared_ptr<Group> alone();
  /// Returns when all ranks have connected and authenticated one another; afterwards no other
  /// process can connect. A rank that uses a rendezvous file creates `folder` if needed; the file
  /// is removed once all ranks have joined.
  static std::shared_ptr<Group> join(
      const core::Launch& launch, const std::string& folder, std::chrono::milliseconds timeout);
  ~Group();
  Group(Group&&) = delete;

  /// Connects the ranks by the library of this name (transport.h) for tensors on `device`, the
  /// current device of this thread. Collective. Throws Error{unavailable} on all ranks if one lacks
  /// the library, or if it cannot connect them.
  void connect(const std::string& library, torch::Device device);
  /// Returns where tensors of `device` must be for the members below: there if the ranks are
  /// connected for the device, else on the CPU. A transfer on a device with streams is queued on
  /// its current stream.
  torch::Device reach(torch::Device device) const;
  /// Returns whether connect() was called for `device` with a library that connects devices.
  bool connects(torch::Device device) const;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  /// Returns this rank's number among those of its machine, as given by the launcher; 0 if unknown.
  std::int64_t local() const { return local_; }
  bool first() const { return rank_ == 0; }
  bool is_alone() const { return size_ == 1; }

  /// Replaces `numbers` (any shape, float32 or float64) by the sum over ranks, byte-identical on
  /// all ranks. With Sum::tree and N ranks, N a power of two, the sum is
  ///   ((r0 + r1) + (r2 + r3)) + ...
  /// Each rank sends and receives at most twice the tensor's bytes.
  void sum(torch::Tensor& numbers, Sum how = Sum::tree);

  /// Adds tensors over ranks, each for one rank: slices[r] (n_r), float32 or float64 and of one
  /// length on all ranks, is this rank's part of the sum that rank r gets. Returns the sum of
  /// slices[rank()], by the tree of sum() for any number of ranks or in the library's order (Gloo:
  /// of the ranks). Overwrites slices[rank()]; moved here, the others are freed once they are sent.
  torch::Tensor reduce_scatter(std::vector<torch::Tensor> slices, Sum how = Sum::tree);

  /// Returns every rank's tensor, in order of rank; all have equal shape and dtype.
  std::vector<torch::Tensor> gather(const torch::Tensor& own);
  /// Returns every rank's tensor, of one dtype and with lengths[r] elements for rank r.
  std::vector<torch::Tensor> gather(
      const torch::Tensor& own, const std::vector<std::int64_t>& lengths);
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
  struct Devices;
  Group();
  template <class F>
  void guarded(const F& transfer) const;  // converts exceptions of transports to Error{rank_lost}
  [[noreturn]] void leave_as(std::int64_t rank, std::int64_t code) const;
  void expect_all_there() const;
  Transport& transport(const torch::Tensor& tensor) const;
  std::vector<torch::Tensor> gather(
      Transport& by, const torch::Tensor& own, const std::vector<std::int64_t>& lengths) const;
  std::vector<torch::Tensor> gather_equal(Transport& by, const torch::Tensor& own) const;
  std::vector<std::int64_t> gather_numbers(std::int64_t own) const;  // a number of each rank
  std::chrono::milliseconds beat() const;

  std::int64_t rank_ = 0, size_ = 1, local_ = 0;
  std::chrono::milliseconds timeout_{};
  std::atomic<bool> interrupted_ = false;
  std::unique_ptr<Gloo> gloo_;        // null: alone
  std::unique_ptr<Devices> devices_;  // null: everything goes over gloo_
};

/// Throws Error{usage} on all ranks if a rank's `own` (an object) differs from rank 0's; names the
/// first differing key, the rank and both values.
void expect_agreement(Group& group, const core::OrderedJson& own);

/// Throws Error{bug} on all ranks if a rank's `digest` of `what` differs from rank 0's; names the
/// first such rank.
void expect_same_digest(Group& group, const std::string& what, const std::string& digest);

/// Losses whose gradients reach a key.
enum class KeyGradient {
  all,  ///< losses of all ranks, as if one process had the micro-batch
  own,  ///< losses of the key's own rank, as fairseq's gathered memories do
};

/// Consecutive ranks [first, first + size) of a group. Every rank is in one team.
class Team {
 public:
  /// Throws Error{usage} if the group cannot be divided into teams of this size.
  Team(std::shared_ptr<Group> group, std::int64_t size);

  std::int64_t size() const { return size_; }
  /// member(): this rank's index in its team. number(): the team's index.
  std::int64_t member() const { return group_->rank() - first_; }
  std::int64_t number() const { return first_ / size_; }
  std::int64_t teams() const { return group_->size() / size_; }

  /// Range [begin, end), possibly empty, of this member's rows when the team shares `rows`.
  std::int64_t begin(std::int64_t rows) const { return cut(member(), rows); }
  std::int64_t end(std::int64_t rows) const { return cut(member() + 1, rows); }

  /// Gathers the keys of `rows` rows with T = `steps` each: (rows T, d), from this member's own
  /// rows' (n T, d). Keys of other members are float32 constants. In the backward pass, which is
  /// collective, the gradients of the own keys from other members are added, member 0's first.
  torch::Tensor gather(
      const torch::Tensor& own, std::int64_t rows, std::int64_t steps, KeyGradient gradient) const;

 private:
  std::int64_t cut(std::int64_t member, std::int64_t rows) const { return member * rows / size_; }

  std::shared_ptr<Group> group_;
  std::int64_t size_, first_;
};

struct RankOptions {
  std::string ranks = "none";
  std::string timeout = "10:00";
  void fields(core::FieldList& f);
  bool any() const { return ranks != "none"; }
};

/// Option that selects the library which sums gradients of GPUs over ranks.
struct BackendOptions {
  std::string backend = "auto";
  void fields(core::FieldList& f);
};

/// Connects the ranks of `group` for tensors on `device`, this rank's (Group::connect()). auto: by
/// NCCL if `device` is a GPU and all ranks have NCCL. Returns a line for the user if auto cannot
/// use NCCL, else "". Collective. Throws Error{usage} for nccl without a GPU;
/// Error{unavailable}.
std::string connect(Group& group, const BackendOptions& options, torch::Device device);

/// Joins the processes that the launcher started (core/launcher.h), when all are present; without
/// --ranks launcher returns a group of this process. `folder` is visible to all ranks and contains
/// the rendezvous file; created if needed. Throws Error{usage}, and Error{rank_lost} if not all
/// processes join in time.
std::shared_ptr<Group> join(const RankOptions& options, const std::string& folder);
/// Joins the ranks of a program whose output is a file or stdout: the rendezvous file is beside the
/// output, or in the current folder.
std::shared_ptr<Group> join_beside(const RankOptions& options, const std::string& output);

/// Throws Error{usage} for inputs that several ranks cannot read: stdin and pipes.
void expect_files(const std::vector<std::string>& files);

}  // namespace ranks
