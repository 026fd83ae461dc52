#include "serve/job_queue.h"

#include <algorithm>

namespace serve {
void CompletionJob::tell(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  told_.notify_one();
}

void CompletionJob::fail(int status, const std::string& text) {
  Event event{Event::Kind::failed};
  event.status = status;
  event.choice.text = text;
  tell(std::move(event));
}

std::optional<CompletionJob::Event> CompletionJob::next(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  if (!told_.wait_for(lock, within, [this] { return !events_.empty(); })) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::int64_t texts_of(const CompletionRequest& request) {
  return request.n * std::max<std::int64_t>(1, std::ssize(request.prompts));
}

bool JobQueue::push(JobPtr job) {
  const std::lock_guard lock(mutex_);
  if (jobs_.size() >= most_) std::erase_if(jobs_, [](const auto& one) { return one->cancelled(); });
  if (closed_ || jobs_.size() >= most_) return false;
  jobs_.push_back(std::move(job));
  pushed_.notify_one();
  return true;
}

std::vector<JobPtr> JobQueue::next(std::int64_t most, std::chrono::milliseconds within,
                                   const std::optional<std::string>& memory) {
  std::unique_lock lock(mutex_);
  pushed_.wait_for(lock, within, [this] { return !jobs_.empty(); });
  std::vector<JobPtr> taken;
  std::int64_t texts = 0;
  for (; !jobs_.empty(); jobs_.pop_front()) {
    const auto& request = jobs_.front()->request;
    if (jobs_.front()->cancelled()) continue;
    const auto wanted =
        taken.empty() ? memory.value_or(request.memory) : taken.front()->request.memory;
    texts += texts_of(request);
    if (request.memory != wanted || (!taken.empty() && texts > most)) break;
    taken.push_back(jobs_.front());
  }
  return taken;
}

void JobQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool JobQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::size_t JobQueue::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [](const auto& one) { return !one->cancelled(); }));
}

}  // namespace serve
