#include "ranks/group.h"

#include <filesystem>
#include <new>

#include "core/units.h"
#include "ranks/gloo.h"

namespace ranks {
namespace {

constexpr std::chrono::seconds kBeat{5};  // who works while others wait says so this often at least
enum Word : std::int64_t { kAlive, kDone, kFailed };

}  // namespace

// What moves tensors of a device that are not copied to the host.
struct Group::Devices {
  torch::Device device;
  std::unique_ptr<Transport> transport;
  std::optional<FailureDetector> failure_detector;  // of the transport: goes first
};

Group::Group() = default;

Group::~Group() {
  if (!devices_) return;
  if (std::uncaught_exceptions() > 0) devices_->transport->abandon("this rank failed");
  else if (!devices_->transport->failure()) devices_->failure_detector->leave();
}

template <class F> void Group::guarded(const F& transfer) const {
  expect_all_there();
  try {
    transfer();
  } catch (const core::Error&) { throw; } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) { fail_lost(rank_, size_, reason(error)); }
}

// What a device computed since a transfer was abandoned is worth nothing.
void Group::expect_all_there() const {
  if (!devices_) return;
  if (const auto why = devices_->transport->failure()) fail_lost(rank_, size_, *why);
}

Transport& Group::transport(const Tensor& tensor) const {
  return connects(tensor.device()) ? *devices_->transport : *gloo_;
}

bool Group::connects(torch::Device device) const { return devices_ && devices_->device == device; }

torch::Device Group::reach(torch::Device device) const {
  return connects(device) ? device : torch::Device(torch::kCPU);
}

void Group::connect(const std::string& name, torch::Device device) {
  const auto& chosen = library(name);
  if (is_alone() || chosen.connect == nullptr) return;
  std::string ticket;
  together([&] { ticket = chosen.load(first()); });
  const auto tickets = gather(ticket);
  try {
    auto transport = chosen.connect({rank_, size_, device, timeout_, tickets[0]});
    devices_.reset(new Devices{device, std::move(transport), std::nullopt});
  } catch (const std::exception& error) {
    core::fail(core::Code::unavailable,
        "rank {} of {}: {}; --rank-backend gloo goes through the host", rank_, size_, error.what());
  }
  devices_->failure_detector.emplace(*gloo_, *devices_->transport);
}

void Group::leave_as(std::int64_t rank, std::int64_t code) const {
  core::fail(static_cast<core::Code>(code), "rank {} of {}: rank {} failed; see its message", rank_,
      size_, rank);
}

std::shared_ptr<Group> Group::alone() { return std::shared_ptr<Group>(new Group); }

std::shared_ptr<Group> Group::join(
    const core::Launch& launch, const std::string& folder, std::chrono::milliseconds timeout) {
  auto group = alone();
  group->rank_ = launch.rank;
  group->size_ = launch.size;
  group->local_ = launch.local;
  group->timeout_ = timeout;
  if (launch.size == 1) return group;
  group->gloo_ = join_gloo(launch, folder, timeout);
  return group;
}

void Group::sum(Tensor& numbers, Sum how) {
  if (is_alone()) return;
  const torch::NoGradGuard no_grad;
  const Tensor flat = numbers.view({-1});
  auto& by = transport(flat);
  guarded([&] { how == Sum::tree ? by.add_by_tree(flat) : by.add(flat); });
}

Tensor Group::reduce_scatter(std::vector<Tensor> slices, Sum how) {
  if (is_alone()) return slices[0];
  const torch::NoGradGuard no_grad;
  auto& by = transport(slices[0]);
  Tensor sum;
  guarded([&] { sum = by.reduce_scatter(std::move(slices), how == Sum::tree); });
  return sum;
}

std::vector<Tensor> Group::gather(const Tensor& own) {
  return is_alone() ? std::vector<Tensor>{own} : gather_equal(transport(own), own);
}

std::vector<Tensor> Group::gather(const Tensor& own, const std::vector<std::int64_t>& lengths) {
  return is_alone() ? std::vector<Tensor>{own} : gather(transport(own), own, lengths);
}

std::vector<Tensor> Group::gather_equal(Transport& by, const Tensor& own) const {
  auto all =
      gather(by, own, std::vector<std::int64_t>(static_cast<std::size_t>(size_), own.numel()));
  for (auto& tensor : all) tensor = tensor.view(own.sizes());
  return all;
}

std::vector<Tensor> Group::gather(
    Transport& by, const Tensor& own, const std::vector<std::int64_t>& lengths) const {
  const torch::NoGradGuard no_grad;
  const auto empty = std::all_of(lengths.begin(), lengths.end(), [](auto n) { return n == 0; });
  if (empty) return std::vector<Tensor>(lengths.size(), own);
  // Gathers bytes, because not every backend supports every dtype.
  const Tensor bytes = own.contiguous().view({-1}).view(torch::kUInt8);
  auto byte_lengths = lengths;
  for (auto& length : byte_lengths) length *= static_cast<std::int64_t>(own.element_size());
  std::vector<Tensor> all;
  guarded([&] { all = by.gather(bytes, byte_lengths); });
  for (auto& tensor : all) tensor = tensor.view(own.scalar_type());
  return all;
}

std::vector<std::int64_t> Group::gather_numbers(std::int64_t own) const {
  return core::mapped(gather_equal(*gloo_, torch::tensor({own}, torch::kInt64)),
      [](const Tensor& one) { return one.item<std::int64_t>(); });
}

std::vector<std::string> Group::gather(const std::string& own) {
  if (is_alone()) return {own};
  const auto lengths = gather_numbers(std::ssize(own));
  const auto longest = *std::ranges::max_element(lengths);
  Tensor bytes = torch::zeros({longest}, torch::kUInt8);
  if (longest > 0) std::copy(own.begin(), own.end(), bytes.data_ptr<std::uint8_t>());
  std::vector<std::string> texts;
  for (const auto& other : gather_equal(*gloo_, bytes)) {
    const auto* const begin = other.const_data_ptr<std::uint8_t>();
    texts.emplace_back(begin, begin + lengths[texts.size()]);
  }
  return texts;
}

void Group::exchange(
    std::int64_t first, const std::vector<Tensor>& out, const std::vector<Tensor>& in) {
  if (is_alone()) return;
  const torch::NoGradGuard no_grad;
  auto& by = transport(out[0]);
  guarded([&] { by.exchange(first, out, in); });
}

std::int64_t Group::from_first(std::int64_t value) {
  if (is_alone()) return value;
  return gather_numbers(value)[0];
}

unsigned Group::any(unsigned bits) {
  if (is_alone()) return bits;
  constexpr int kBits = 8;
  Tensor counts = torch::zeros({kBits}, torch::kFloat64);
  auto* const count = counts.data_ptr<double>();
  for (int bit = 0; bit < kBits; ++bit) count[bit] = bits >> bit & 1U;
  guarded([&] { gloo_->add_by_tree(counts); });
  unsigned all = 0;
  for (int bit = 0; bit < kBits; ++bit) all |= count[bit] > 0 ? 1U << bit : 0;
  return all;
}

std::chrono::milliseconds Group::beat() const {
  return std::min<std::chrono::milliseconds>(kBeat, timeout_ / 4);
}

std::int64_t Group::first_does(const std::function<std::int64_t()>& work) {
  if (is_alone()) return work();
  std::int64_t value = 0;
  if (!first()) {
    std::int64_t word = kAlive;
    while (word == kAlive) guarded([&] { gloo_->hear(word, value); });
    if (word == kFailed) leave_as(0, value);
    return value;
  }
  expect_all_there();
  Heart heart(beat(), [this] { gloo_->announce(kAlive, 0); });
  try {
    value = work();
  } catch (const core::Error& error) {
    try {
      heart.end();
      gloo_->announce(kFailed, static_cast<std::int64_t>(error.code()));
    } catch (const std::exception&) {
      // The other ranks are lost too; the first error counts.
    }
    throw;
  }
  guarded([&] {
    heart.end();
    gloo_->announce(kDone, value);
  });
  return value;
}

void Group::together(const std::function<void()>& work, const std::function<bool()>& stopped) {
  if (is_alone()) return work();
  expect_all_there();
  // Or 0, or the code that a rank fails with; stopped is no failure.
  constexpr std::int64_t kAtWork = -1, kStopping = -2;
  constexpr auto kStopped = static_cast<std::int64_t>(core::Code::stopped);
  const auto asked = [&] { return stopped && stopped(); };
  interrupted_ = false;
  // All ranks exchange their states in rounds until no rank is at work.
  const auto say = [this](std::int64_t own) {
    const auto all = gather_numbers(own);
    for (const auto state : all)
      if (state == kStopping || state == kStopped) interrupted_ = true;
    return all;
  };
  const auto live = [&] {
    try {
      say(asked() ? kStopping : kAtWork);
    } catch (const core::Error&) {
      interrupted_ = true;
      throw;
    }
  };
  std::optional<core::Error> failure;
  {
    Heart heart(beat(), live);
    try {
      work();
    } catch (const core::Error& error) { failure = error; }
    try {
      heart.end();
    } catch (const core::Error&) {
      // Loss of a rank explains more than the error of the work that it caused.
      if (!failure || failure->code() == core::Code::rank_lost) throw;
    }
  }
  const auto own = failure ? static_cast<std::int64_t>(failure->code()) : asked() ? kStopped : 0;
  std::vector<std::int64_t> codes;
  try {
    do codes = say(own);
    while (std::any_of(codes.begin(), codes.end(), [](auto code) { return code < 0; }));
  } catch (const core::Error&) {
    if (!failure) throw;
  }
  if (failure) throw core::Error(*failure);
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (codes[rank] != 0 && codes[rank] != kStopped)
      leave_as(static_cast<std::int64_t>(rank), codes[rank]);
}

void expect_agreement(Group& group, const core::OrderedJson& own) {
  if (group.is_alone()) return;
  const auto texts = group.gather(core::dump(own));
  const auto first = core::OrderedJson::parse(texts[0]);
  const auto value = [](const core::OrderedJson& object, const std::string& key) {
    return object.contains(key) ? core::dump(object[key]) : "nothing";
  };
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto other = core::OrderedJson::parse(texts[rank]);
    for (const auto& object : {first, other}) {
      for (const auto& [key, ignored] : object.items()) {
        const auto here = value(first, key), there = value(other, key);
        if (here != there)
          core::bad_usage(
              "{}: rank 0 has {}, rank {} has {}; give all ranks the same", key, here, rank, there);
      }
    }
  }
}

void expect_same_digest(Group& group, const std::string& what, const std::string& digest) {
  const auto digests = group.gather(digest);
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] != digests[0])
      core::bug(
          "{} of rank {} differ from rank 0: a fault of a machine, the network or this program; "
          "rerun to resume from the last checkpoint",
          what, rank);
  }
}

Team::Team(std::shared_ptr<Group> group, std::int64_t size)
    : group_(std::move(group)), size_(size), first_(group_->rank() / size * size) {
  if (group_->size() % size_ != 0)
    core::bad_usage("--memory-ranks: takes a divisor of the number of ranks, {}", group_->size());
}

Tensor Team::gather(
    const Tensor& own, std::int64_t rows, std::int64_t steps, KeyGradient gradient) const {
  if (size_ == 1) return own;
  const auto group = group_;
  const std::int64_t width = own.size(1), first = first_, me = member();
  const auto lengths = core::generated(size_, [&](std::int64_t i) {  // of each member, in tokens
    return (cut(i + 1, rows) - cut(i, rows)) * steps;
  });

  const auto place = group->reach(own.device());
  const Tensor given = own.detach().to(place, torch::kFloat32).contiguous();
  std::vector<Tensor> out(lengths.size(), given), in, parts;
  for (const auto length : lengths) in.push_back(torch::empty({length, width}, given.options()));
  group->exchange(first, out, in);
  for (const auto& part : in) parts.push_back(part.to(own.device(), own.scalar_type()));
  parts[static_cast<std::size_t>(me)] = own;
  const Tensor all = torch::cat(parts);
  if (!all.requires_grad() || gradient == KeyGradient::own) return all;

  // What stands in `whole` for the own rows is this rank's part of their gradient.
  all.register_hook([group, place, first, me, lengths](const Tensor& whole) {
    const torch::NoGradGuard no_grad;
    const Tensor host = whole.to(place, torch::kFloat32).contiguous();
    const auto theirs = host.split_with_sizes(lengths);
    const auto mine = static_cast<std::size_t>(me);
    std::vector<Tensor> parts(theirs.size());
    for (auto& part : parts) part = torch::empty_like(theirs[mine]);
    group->exchange(first, theirs, parts);
    parts[mine] = theirs[mine];
    Tensor sum = parts[0].clone();
    for (std::size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
    Tensor total = whole.clone();
    total.split_with_sizes(lengths)[mine].copy_(sum);
    return total;
  });
  return all;
}

void RankOptions::fields(core::FieldList& f) {
  const auto in_processes = f.group("Processes");
  f("ranks", ranks,
      "launcher: this process is one of several that srun, torchrun or mpirun started for one run",
      {"none", "launcher"});
  f("rank-timeout", timeout, "time (H:M:S) that a rank waits for another before it exits with 76");
}

void BackendOptions::fields(core::FieldList& f) {
  const auto in_processes = f.group("Processes");
  f("rank-backend", backend,
      "library that transfers GPU tensors between ranks: nccl; gloo: through host memory; auto: "
      "nccl on GPUs if all ranks have it",
      {"auto", "gloo", "nccl"});
}

std::string connect(Group& group, const BackendOptions& options, torch::Device device) {
  if (group.is_alone()) return "";
  expect_agreement(
      group, {{"rank-backend", options.backend}, {"device", device.is_cpu() ? "cpu" : "cuda"}});
  if (options.backend == "gloo") return "";
  if (options.backend == "nccl") {
    // A library that is named may serve the CPU (tests/nccl).
    if (device.is_cpu() && core::own_environment("TESSERA_NCCL") == nullptr)
      core::bad_usage("--rank-backend nccl: connects GPUs; give --device cuda or leave it out");
    group.connect("nccl", device);
    return "";
  }
  if (!device.is_cuda()) return "";
  std::string why;
  try {
    library("nccl").load(/*first=*/false);
  } catch (const core::Error& error) { why = error.what(); }
  if (group.any(why.empty() ? 0 : 1) == 0) {
    group.connect("nccl", device);
    return "";
  }
  return fmt::format("ranks add gradients through the host, not by NCCL: {}",
      why.empty() ? "another rank lacks it" : why);
}

std::shared_ptr<Group> join(const RankOptions& options, const std::string& folder) {
  if (!options.any()) return Group::alone();
  double seconds = 0;
  try {
    seconds = core::parse_duration_s(options.timeout);
  } catch (const core::Error& error) {
    core::fail(error.code(), "--rank-timeout: {}", error.what());
  }
  if (seconds < 1) core::bad_usage("--rank-timeout: takes at least one second");
  try {
    return Group::join(core::launch(), folder,
        std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds)));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::usage) throw;
    core::bad_usage("--ranks {}", error.what());
  }
}

void expect_files(const std::vector<std::string>& files) {
  if (files.empty() || std::find(files.begin(), files.end(), "-") != files.end())
    core::bad_usage("FILE: several ranks cannot share stdin; give files");
  for (const auto& file : files)
    if (std::filesystem::is_fifo(file))
      core::bad_usage("{}: several ranks cannot share a pipe; give files", file);
}

std::shared_ptr<Group> join_beside(const RankOptions& options, const std::string& output) {
  const auto folder = std::filesystem::path(output).parent_path().string();
  return join(options, folder.empty() ? "." : folder);
}

}  // namespace ranks
