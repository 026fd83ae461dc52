#pragma once
// Measures the memory of torch that a test holds.

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

/// Counts the bytes of CPU tensors that are made during its lifetime. The tensors may outlive it.
class CountedMemory {
 public:
  CountedMemory() : counter_(counter()) {
    counter_.base = c10::GetCPUAllocator();
    counter_.held = counter_.most = 0;
    c10::SetCPUAllocator(&counter_, kPriority);
  }
  ~CountedMemory() { c10::SetCPUAllocator(counter_.base, kPriority); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::int64_t held() const { return counter_.held; }
  std::int64_t most() const { return counter_.most; }

 private:
  static constexpr std::uint8_t kPriority = 100;

  struct Counter final : c10::Allocator {
    struct Block {
      c10::DataPtr data;
      std::int64_t bytes;
    };
    c10::Allocator* base = nullptr;
    std::atomic<std::int64_t> held = 0, most = 0;

    c10::DataPtr allocate(std::size_t n) override {
      auto* const block = new Block{base->allocate(n), static_cast<std::int64_t>(n)};
      held += block->bytes;
      most = std::max(most.load(), held.load());
      void* const data = block->data.get();
      return {data, block, &release, c10::Device(c10::kCPU)};
    }
    static void release(void* block) {
      counter().held -= static_cast<Block*>(block)->bytes;
      delete static_cast<Block*>(block);
    }
    void copy_data(void* to, const void* from, std::size_t n) const override {
      default_copy_data(to, from, n);
    }
  };
  static Counter& counter() {
    static Counter one;
    return one;
  }
  Counter& counter_;
};
