#include "ranks/team.h"

namespace ranks {

using torch::Tensor;

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
  std::vector<std::int64_t> lengths;  // of each member, in tokens
  for (std::int64_t i = 0; i < size_; ++i)
    lengths.push_back((cut(i + 1, rows) - cut(i, rows)) * steps);

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

}  // namespace ranks
