#include "ranks/transport.h"

#include "core/error.h"

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

void add_up(const std::vector<torch::Tensor>& parts, bool in_pairs) {
  for (std::size_t i = 1; !in_pairs && i < parts.size(); ++i) parts[0].add_(parts[i]);
  for (std::size_t step = 1; in_pairs && step < parts.size(); step *= 2)
    for (std::size_t i = 0; i + step < parts.size(); i += 2 * step) parts[i].add_(parts[i + step]);
}

void fail_lost(std::int64_t rank, std::int64_t size, const std::string& why) {
  core::fail(
      core::Code::rank_lost,
      "rank {} of {}: another rank was lost ({}); rerun to resume from the last checkpoint, if "
      "there is one",
      rank, size, why);
}

}  // namespace ranks
