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

void fail_lost(std::int64_t rank, std::int64_t size, const std::string& why) {
  core::fail(
      core::Code::rank_lost,
      "rank {} of {}: another rank was lost ({}); rerun to resume from the last checkpoint, if "
      "there is one",
      rank, size, why);
}

}  // namespace ranks
