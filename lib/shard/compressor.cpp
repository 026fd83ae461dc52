#include "shard/compressor.h"

#include "core/parallel.h"

namespace shard {

Compressor::Compressor(int jobs, Emit emit)
    : emit_(std::move(emit)),
      most_waiting_(static_cast<std::size_t>(std::max(jobs, 1)) * 2),
      context_(make_compress_context()) {
  if (jobs > 1)
    core::start_threads(threads_, static_cast<std::size_t>(jobs), [this](std::size_t) { work(); });
}

Compressor::~Compressor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  todo_changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Compressor::push(core::Bytes& raw) {
  if (free_.empty()) free_.push_back(std::make_unique<Task>());
  std::unique_ptr<Task> task = std::move(free_.back());
  free_.pop_back();
  task->raw.swap(raw);
  raw.clear();
  task->done = false;
  if (threads_.empty()) {
    compress_frame(context_.get(), task->raw, task->frame);
    emit_(task->frame, task->raw.size());
    free_.push_back(std::move(task));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    todo_.push_back(task.get());
  }
  waiting_.push_back(std::move(task));
  todo_changed_.notify_one();
  while (waiting_.size() > most_waiting_) emit_first();
}

void Compressor::finish() {
  while (!waiting_.empty()) emit_first();
}

void Compressor::emit_first() {
  Task& task = *waiting_.front();
  {
    std::unique_lock lock(mutex_);
    task_done_.wait(lock, [&] { return task.done; });
  }
  if (task.error) std::rethrow_exception(task.error);
  emit_(task.frame, task.raw.size());
  free_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
}

void Compressor::work() {
  CompressContext context;
  for (;;) {
    Task* task = nullptr;
    {
      std::unique_lock lock(mutex_);
      todo_changed_.wait(lock, [&] { return stop_ || !todo_.empty(); });
      if (stop_) return;
      task = todo_.front();
      todo_.pop_front();
    }
    try {
      if (!context) context = make_compress_context();
      compress_frame(context.get(), task->raw, task->frame);
    } catch (...) {
      task->error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      task->done = true;
    }
    task_done_.notify_one();
  }
}

}  // namespace shard
