#include "ranks/transport.h"

namespace ranks {

void Transport::abandon(const std::string& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = why;
  }
  end_transfers();
}

std::optional<std::string> Transport::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

torch::Tensor Transport::reduce_scatter(std::vector<torch::Tensor> slices, bool by_tree) {
  const auto me = static_cast<std::size_t>(rank_);
  std::vector<torch::Tensor> parts(slices.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = i == me ? slices[me] : torch::empty_like(slices[me]);
  exchange(0, slices, parts);
  slices.clear();
  add_up(parts, by_tree);
  return parts[0];
}

std::vector<torch::Tensor> Transport::gather_by_exchange(
    const torch::Tensor& own, const std::vector<std::int64_t>& lengths) {
  const auto all = core::generated(size_, [&](std::int64_t rank) {
    const auto length = lengths[static_cast<std::size_t>(rank)];
    return rank == rank_ ? own : torch::empty({length}, own.options());
  });
  exchange(0, std::vector<torch::Tensor>(lengths.size(), own), all);
  return all;
}

void add_up(const std::vector<torch::Tensor>& parts, bool in_pairs) {
  for (std::size_t i = 1; !in_pairs && i < parts.size(); ++i) parts[0].add_(parts[i]);
  for (std::size_t step = 1; in_pairs && step < parts.size(); step *= 2)
    for (std::size_t i = 0; i + step < parts.size(); i += 2 * step) parts[i].add_(parts[i + step]);
}

void fail_lost(std::int64_t rank, std::int64_t size, const std::string& why) {
  core::fail(core::Code::rank_lost,
      "rank {} of {}: another rank was lost ({}); rerun to resume from the last checkpoint, if "
      "there is one",
      rank, size, why);
}

const Library& library(const std::string& name) {
  static constexpr Library kLibraries[] = {
      {"gloo", nullptr, nullptr}, {"nccl", load_nccl, connect_nccl}};
  if (const auto* found = core::find_by(kLibraries, name, &Library::name)) return *found;
  core::bad_usage("'{}' does not connect ranks", name);
}

}  // namespace ranks
