#pragma once
// Compresses frames in parallel and emits them in input order.

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/io.h"
#include "shard/zstd_frame.h"

namespace shard {

/// A Compressor calls `emit` on the caller's thread, within push() and finish(). At most 2 * `jobs`
/// + 1 frames are pending. It uses no threads if jobs < 2 or the system starts none.
class Compressor {
 public:
  using Emit = std::function<void(std::span<const std::byte> frame, std::size_t raw_bytes)>;
  Compressor(int jobs, Emit emit);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// Queues the bytes of `raw` and leaves `raw` empty.
  void push(core::Bytes& raw);
  /// Emits all pending frames.
  void finish();

 private:
  struct Task {
    core::Bytes raw, frame;
    bool done = false;
    std::exception_ptr error;
  };
  void work();
  void emit_first();

  Emit emit_;
  std::size_t most_waiting_;
  CompressContext context_;  // used without threads
  // In the order of push(); only the caller's thread uses it.
  std::deque<std::unique_ptr<Task>> waiting_;
  std::vector<std::unique_ptr<Task>> free_;
  std::mutex mutex_;
  std::condition_variable todo_changed_, task_done_;
  std::deque<Task*> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shard
