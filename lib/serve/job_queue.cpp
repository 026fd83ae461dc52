#include "serve/job_queue.h"

namespace serve {
void CompletionJob::send(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  told_.notify_one();
}

void CompletionJob::fail(int status, const std::string& text) {
  Event event{Event::Kind::failed};
  event.status = status;
  event.choice.text = text;
  send(std::move(event));
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

JobPtr JobQueue::take(const std::function<bool(const CompletionRequest&)>& fits) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [](const auto& one) { return one->cancelled(); });
  const auto found =
      std::ranges::find_if(jobs_, [&](const auto& one) { return fits(one->request); });
  if (found == jobs_.end()) return nullptr;
  auto job = std::move(*found);
  jobs_.erase(found);
  return job;
}

void JobQueue::wait(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  pushed_.wait_for(lock, within, [this] { return !jobs_.empty(); });
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
